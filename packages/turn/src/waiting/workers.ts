import type { Redis } from 'ioredis';
import { z } from 'zod';
import { keyOf } from '../keys.ts';
import { TurnCounts } from './turn-counts.ts';

/** Workers report every two seconds; one that has missed two reports counts as dead. */
const SILENCE_MS = 5000;
/** A worker whose watchdog saw a longer stall than this in its last ten seconds runs no turn in time. */
const STALL_LIMIT_MS = 5000;

/** One of another version may lack what only people read. */
const WorkerReport = z.object({
  version: z.string().default('unknown'),
  concurrency: z.int().nonnegative().default(0),
  startedAt: z.iso.datetime().default('1970-01-01T00:00:00.000Z'),
  draining: z.boolean(),
  /** An operator has it take no turns. */
  isDrained: z.boolean().default(false),
  stallMs: z.number().nonnegative(),
  turns: z.array(z.string()).default([]),
  counts: TurnCounts.optional(),
  /** Whether the built-in demo model answers. */
  isDemo: z.boolean().default(false),
  /** The default model. */
  model: z.string().optional(),
  /** One line for each provider that it cannot use. */
  unusableProviders: z.array(z.string()).optional(),
  sandbox: z.object({ kind: z.string(), isUsable: z.boolean(), reason: z.string() }).optional(),
});
export type WorkerReport = Readonly<z.infer<typeof WorkerReport>>;

/** A worker as it last reported. */
export interface ReportedWorker extends WorkerReport {
  readonly id: string;
  readonly state: 'running' | 'draining' | 'stalled';
  /** Since its last report. */
  readonly silentMs: number;
}

/** All workers that live. `atMost`: more are not read. */
export async function readWorkers(redis: Redis, atMost = 1000): Promise<ReportedWorker[]> {
  // Redis' own clock: it is the one that the workers' reports are dated with.
  const [seconds, micros] = await redis.time();
  const nowMs = Number(seconds) * 1000 + Number(micros) / 1000;
  const heard = await redis.zrangebyscore(keyOf.workers, nowMs - SILENCE_MS, '+inf', 'WITHSCORES', 'LIMIT', 0, atMost);
  const ids = heard.filter((_entry, index) => index % 2 === 0);
  const reports = ids.length === 0 ? [] : await redis.hmget(keyOf.workerFacts, ...ids);
  return ids.flatMap((id, index) => {
    const report = WorkerReport.safeParse(JSON.parse(reports[index] ?? 'null')).data;
    if (report === undefined) return [];
    return [{ ...report, id, state: findState(report), silentMs: Math.max(0, nowMs - Number(heard[index * 2 + 1])) }];
  });
}

function findState({ draining, stallMs }: WorkerReport): ReportedWorker['state'] {
  if (draining) return 'draining';
  return stallMs < STALL_LIMIT_MS ? 'running' : 'stalled';
}
