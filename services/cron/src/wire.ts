import { announceProcess, openCore } from '@concierge/core';
import { Figures, newMetrics, openProcessFigures, serveMetrics, startPart, type ServiceParts } from '@concierge/runtime';
import {
  DeliveryReconciler,
  ErasureReconciler,
  RemovalReconciler,
  RetentionReconciler,
  listTurnReconcilers,
  UnansweredHandoffs,
  type OnRepaired,
} from '@concierge/turn';
import type { Config } from './config.ts';
import { Mailer } from './mailer.ts';
import { ScheduleRunner, ScheduleMetrics } from './schedules/schedule-runner.ts';
import { ScheduleClock } from './schedules/schedule-clock.ts';
import { SystemFigures } from './system-figures.ts';

/** It goes through all tenants when it starts, and most of them have nothing to do for it after that. */
const OPEN_TENANTS_MAX = 200;

/** Builds the whole service, in order, top to bottom; the stack closes it in the reverse order. */
export async function wire(config: Config, { stack, log }: ServiceParts): Promise<void> {
  const core = await openCore(config, stack, { role: 'worker', openTenantsMax: OPEN_TENANTS_MAX, log });
  announceProcess({ service: 'cron', ...config, sendsEmail: config.mail !== undefined }, core, { stack, log });
  const { redis, tenants, queue, turns, deliveries, events, budgets } = core;
  const registry = newMetrics('cron');
  openProcessFigures(registry, config);
  const repairs = new Figures(registry).counter('concierge_reconciler_repairs_total');
  const onRepaired: OnRepaired = (kind, count) => {
    repairs.inc({ kind }, count);
  };
  const metrics = new ScheduleMetrics(registry);
  const systemFigures = new SystemFigures({ redis, tenants, registry, log });
  if (config.metrics !== undefined) stack.use(await serveMetrics(registry, config.metrics));
  startPart(stack, new RemovalReconciler({ tenants, redis, log }));
  startPart(stack, new ErasureReconciler({ tenants, turns, redis, logsFolder: tenants.logsFolder, log }));
  startPart(stack, new RetentionReconciler({ tenants, redis, log, now: Date.now }));
  startPart(stack, new DeliveryReconciler({ redis, queue: deliveries, tenants, onRepaired, log }));
  for (const part of listTurnReconcilers({ redis, ...queue, tenants, onRepaired, log })) startPart(stack, part);
  const mailer = config.mail === undefined ? undefined : new Mailer(config.mail);
  const sendEmail = mailer?.sendUnanswered.bind(mailer);
  startPart(stack, new UnansweredHandoffs({ tenants, redis, webhookEvents: events.outgoing, sendEmail, log, now: Date.now }));
  const runner = new ScheduleRunner({ turns, webhookEvents: events.outgoing, budgets, metrics, log, now: Date.now });
  startPart(stack, new ScheduleClock({ redis, tenants, runner, log, now: Date.now }));
  startPart(stack, systemFigures);
}
