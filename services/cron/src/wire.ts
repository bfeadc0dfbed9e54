import { armFailpoints, assertNoEviction, connectRedis, redisReady, type Log, type Running } from '@concierge/runtime';
import { openIndex, Tenants } from '@concierge/tenant';
import { Doorbells, Lanes, Sweeper } from '@concierge/turn';
import type { Config } from './config.ts';

const REDIS_START_TIMEOUT_MS = 30_000;

/** Builds the whole service, in order, top to bottom. */
export async function wire(config: Config, log: Log): Promise<Running> {
  armFailpoints(config.failpoints);
  const redis = connectRedis({ url: config.redisUrl, role: 'worker', log });
  await redisReady(redis, REDIS_START_TIMEOUT_MS);
  await assertNoEviction(redis, log);
  const index = await openIndex({ databaseUrl: config.databaseUrl, dataDir: config.dataDir, log });
  const tenants = new Tenants({ dataDir: config.dataDir, index, keySecret: config.keySecret, secretsKey: config.secretsKey, log });
  const doorbells = new Doorbells(redis, log);
  const sweeper = new Sweeper({ redis, lanes: new Lanes(redis), doorbells, tenants, log });
  sweeper.start();
  return {
    stopInOrder: [
      sweeper,
      { name: 'doorbells', stop: async () => await doorbells.stop() },
      { name: 'index', stop: async () => await index.close() },
      { name: 'redis', stop: async () => void (await redis.quit()) },
    ],
  };
}
