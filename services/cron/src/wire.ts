import { openCore } from '@concierge/core';
import { newMetrics, serveMetrics, startPart, type ServiceParts } from '@concierge/runtime';
import { DeliveryReconciler, RemovalReconciler, TurnReconciler } from '@concierge/turn';
import type { Config } from './config.ts';
import { ScheduleRunner, ScheduleMetrics } from './schedules/schedule-runner.ts';
import { ScheduleClock } from './schedules/schedule-clock.ts';

/** It goes through all tenants when it starts, and most of them have nothing to do for it after that. */
const OPEN_TENANTS_MAX = 200;

/** Builds the whole service, in order, top to bottom; the stack closes it in the reverse order. */
export async function wire(config: Config, { stack, log }: ServiceParts): Promise<void> {
  const { redis, tenants, queue, turns, deliveries, events, budgets } = await openCore(config, stack, {
    role: 'worker',
    openTenantsMax: OPEN_TENANTS_MAX,
    log,
  });
  const registry = newMetrics('cron');
  if (config.metrics !== undefined) stack.use(await serveMetrics(registry, config.metrics));
  startPart(stack, new RemovalReconciler({ tenants, redis, log }));
  startPart(stack, new DeliveryReconciler({ redis, queue: deliveries, tenants, log }));
  startPart(stack, new TurnReconciler({ redis, ...queue, tenants, log }));
  const metrics = new ScheduleMetrics(registry);
  const runner = new ScheduleRunner({ turns, webhookEvents: events.outgoing, budgets, metrics, log, now: Date.now });
  startPart(stack, new ScheduleClock({ redis, tenants, runner, log, now: Date.now }));
}
