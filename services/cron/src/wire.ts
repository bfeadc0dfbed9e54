import { openIndex } from '@concierge/index';
import {
  armFailpoints,
  assertNoEviction,
  connectRedis,
  newMetrics,
  redisReady,
  serveMetrics,
  type Log,
  type Running,
} from '@concierge/runtime';
import { Tenants } from '@concierge/tenant';
import {
  DeliveryBells,
  DeliveryLanes,
  DeliverySweeper,
  Doorbells,
  DueSchedules,
  EventBells,
  Lanes,
  OutgoingEvents,
  forgetTenant,
  Sweeper,
  Turns,
} from '@concierge/turn';
import type { Config } from './config.ts';
import { RemovedTenants } from './removed-tenants.ts';
import { ScheduleAttention } from './schedules/schedule-attention.ts';
import { ScheduleClock } from './schedules/schedule-clock.ts';
import { ScheduleMetrics } from './schedules/schedule-metrics.ts';

const REDIS_START_TIMEOUT_MS = 30_000;

/** Builds the whole service, in order, top to bottom. */
export async function wire(config: Config, log: Log): Promise<Running> {
  armFailpoints(config.failpoints);
  const redis = connectRedis({ url: config.redisUrl, role: 'worker', log });
  await redisReady(redis, REDIS_START_TIMEOUT_MS);
  await assertNoEviction(redis, log);
  const index = await openIndex({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, log });
  const deliveryLanes = new DeliveryLanes(redis);
  const deliveryBells = new DeliveryBells({ redis, lanes: deliveryLanes, log });
  const { dataDir, keySecret, secretsKey } = config;
  const tenants = new Tenants({ dataDir, index, keySecret, secretsKey, outboxBell: async (lane) => await deliveryBells.ring(lane), log });
  const doorbells = new Doorbells(redis, log);
  const lanes = new Lanes(redis);
  const sweeper = new Sweeper({ redis, lanes, doorbells, tenants, log });
  sweeper.start();
  const deliverySweeper = new DeliverySweeper({ redis, lanes: deliveryLanes, bells: deliveryBells, tenants, log });
  deliverySweeper.start();
  const removedTenants = new RemovedTenants({ tenants, forget: async (tenantId) => forgetTenant(redis, tenantId), log });
  removedTenants.start();
  const bells = new EventBells(redis, log);
  const registry = newMetrics('cron');
  const attention = new ScheduleAttention({
    turns: new Turns({ redis, lanes, doorbells, log }),
    outgoingEvents: new OutgoingEvents({ bells, log }),
    metrics: new ScheduleMetrics(registry),
    log,
    now: Date.now,
  });
  const schedules = new ScheduleClock({ due: new DueSchedules(redis), tenants, attention, log, now: Date.now });
  const metricsServer = config.metrics === undefined ? undefined : await serveMetrics(registry, config.metrics);
  schedules.start();
  return {
    stopInOrder: [
      schedules,
      sweeper,
      deliverySweeper,
      removedTenants,
      ...(metricsServer === undefined ? [] : [metricsServer]),
      { name: 'event bells', stop: async () => await bells.stop() },
      { name: 'doorbells', stop: async () => await doorbells.stop() },
      { name: 'delivery bells', stop: async () => await deliveryBells.stop() },
      { name: 'index', stop: async () => await index.close() },
      { name: 'redis', stop: async () => void (await redis.quit()) },
    ],
  };
}
