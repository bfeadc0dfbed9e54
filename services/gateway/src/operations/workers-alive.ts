import type { connectRedis } from '@concierge/runtime';
import { keyOf } from '@concierge/turn';
import { z } from 'zod';

/** Workers report every two seconds; one that has missed two reports counts as dead. */
const SILENCE_MS = 5000;
/** A worker whose watchdog saw a longer stall than this in its last ten seconds runs no turn in time. */
export const STALL_LIMIT_MS = 5000;

/** The part of a worker's report that readiness uses. */
const WorkerReport = z.object({ draining: z.boolean(), stallMs: z.number() });

/** @throws Error when no worker can take a turn: each is silent, draining, or has an event loop that stalls */
export async function assertWorkersAlive(redis: Pick<ReturnType<typeof connectRedis>, 'time' | 'zrangebyscore' | 'hmget'>): Promise<void> {
  // Redis' own clock: it is the one that the workers' reports are dated with.
  const [seconds] = await redis.time();
  const heard = await redis.zrangebyscore(keyOf.workers, Number(seconds) * 1000 - SILENCE_MS, '+inf');
  const reports = heard.length === 0 ? [] : await redis.hmget(keyOf.workerFacts, ...heard);
  if (!reports.some((report) => report !== null && canWork(report))) throw new Error('no worker can take a turn');
}

function canWork(text: string): boolean {
  const { draining, stallMs } = WorkerReport.parse(JSON.parse(text));
  return !draining && stallMs < STALL_LIMIT_MS;
}

const WorkerFacts = z.object({ isDemo: z.boolean() });

/**
 * Whether a worker reports that the built-in demo model answers. False, too, where Redis cannot be asked: nothing
 * depends on it.
 */
export async function isDemoModel(redis: Pick<ReturnType<typeof connectRedis>, 'hvals'>): Promise<boolean> {
  const all = await redis.hvals(keyOf.workerFacts).catch(() => []);
  return all.some((facts) => WorkerFacts.safeParse(JSON.parse(facts)).data?.isDemo === true);
}
