import type { IndexStore } from '@concierge/index';
import { eventLoopStallMs, type connectRedis } from '@concierge/runtime';
import { DataFolder } from './data-folder.ts';
import type { ReadinessChecks } from './readiness.ts';
import { assertWorkersAlive, STALL_LIMIT_MS } from './workers-alive.ts';

export interface ReadinessOptions {
  readonly redis: ReturnType<typeof connectRedis>;
  readonly index: Pick<IndexStore, 'check'>;
  readonly dataDir: string;
}

/** The dependencies that this service needs, by the names under which /readyz shows it. */
export function readinessChecks({ redis, index, dataDir }: ReadinessOptions): ReadinessChecks {
  const data = new DataFolder(dataDir);
  return {
    redis: async () => redis.ping(),
    index: async () => {
      await index.check();
    },
    data: async () => {
      await data.assertWritable();
    },
    loop: async () => {
      const stallMs = eventLoopStallMs();
      if (stallMs >= STALL_LIMIT_MS) throw new Error(`the event loop stood still for ${String(stallMs)} ms`);
      return Promise.resolve();
    },
    workers: async () => {
      await assertWorkersAlive(redis);
    },
  };
}
