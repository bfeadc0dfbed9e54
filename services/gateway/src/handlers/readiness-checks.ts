import type { connectRedis } from '@concierge/runtime';
import type { IndexStore } from '@concierge/tenant';
import { folderIsWritable, type ReadinessChecks } from './readiness.ts';
import { assertWorkersAlive } from './workers-alive.ts';

export interface ReadinessOptions {
  readonly redis: ReturnType<typeof connectRedis>;
  readonly index: Pick<IndexStore, 'check'>;
  readonly dataDir: string;
}

/** What this service cannot work without, by the names under which /readyz shows it. */
export function readinessChecks({ redis, index, dataDir }: ReadinessOptions): ReadinessChecks {
  return {
    redis: async () => redis.ping(),
    index: async () => {
      await index.check();
    },
    data: async () => {
      await folderIsWritable(dataDir);
    },
    workers: async () => {
      await assertWorkersAlive(redis);
    },
  };
}
