import type { connectRedis } from '@concierge/runtime';
import { keyOf } from '@concierge/turn';
import { z } from 'zod';

/** Workers say that they live every few seconds; who has not for this long is gone. */
const SILENCE_MS = 10_000;

/** @throws Error when no worker has been heard of: what is accepted now would wait */
export async function assertWorkersAlive(redis: Pick<ReturnType<typeof connectRedis>, 'time' | 'zcount'>): Promise<void> {
  // Redis' own clock: it is the one that the workers' marks were made with.
  const [seconds] = await redis.time();
  const alive = await redis.zcount(keyOf.workers, Number(seconds) * 1000 - SILENCE_MS, '+inf');
  if (alive === 0) throw new Error('no worker is alive');
}

const WorkerFacts = z.object({ isDemo: z.boolean() });

/** Does a worker say that the built-in demo model answers? False, too, where Redis cannot be asked: nothing depends on it. */
export async function isDemoModel(redis: Pick<ReturnType<typeof connectRedis>, 'hvals'>): Promise<boolean> {
  const all = await redis.hvals(keyOf.workerFacts).catch(() => []);
  return all.some((facts) => WorkerFacts.safeParse(JSON.parse(facts)).data?.isDemo === true);
}
