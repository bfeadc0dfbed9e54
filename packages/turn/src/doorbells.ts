import type { JobsOptions, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { limits } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { bellOptions, keptForDashboards, openBellQueue, openBellWorker } from './bell-queue.ts';
import { doorbellQueueOf, type Lane } from './keys.ts';
import type { Ring } from './lanes.ts';

/**
 * A job is a doorbell: it names a lane, and whoever answers takes the lane's lease and runs its head. Losing, doubling or
 * reordering jobs changes nothing (docs/decisions/0002-wake-ups-and-leases.md).
 */
const DoorbellJob = z.object({ accountId: z.string(), sessionId: z.string(), turnId: z.string() });

const jobOptions = bellOptions(keptForDashboards);

/** BullMQ's largest priority is 2^21; all doorbells carry one, since none would beat them all. */
const MAX_PRIORITY = 1000;

/** The more a tenant has to be done, the later each of it is: whoever has little is not behind whoever has much. */
export function priorityOf(backlog: number): number {
  return Math.min(Math.max(backlog, 1), MAX_PRIORITY);
}

const jobName = 'turn';

function dataOf({ accountId, sessionId, turnId }: Ring): z.infer<typeof DoorbellJob> {
  return { accountId, sessionId, turnId };
}

function optionsOf({ turnId, at, backlog }: Ring): JobsOptions & { readonly jobId: string } {
  return { ...jobOptions, jobId: `${turnId}.${String(at)}`, priority: priorityOf(backlog) };
}

function toJob(ring: Ring): { name: string; data: z.infer<typeof DoorbellJob>; opts: JobsOptions & { readonly jobId: string } } {
  return { name: jobName, data: dataOf(ring), opts: optionsOf(ring) };
}

/** A queue for each depth at which a turn can stand. */
export const depths: readonly number[] = Array.from({ length: limits.subagentDepthMax + 1 }, (_, depth) => depth);

export class Doorbells {
  /** By depth. */
  readonly queues: readonly Queue[];

  constructor(redis: Redis, log: Log) {
    this.queues = depths.map((depth) => openBellQueue(doorbellQueueOf(depth), { redis, kept: keptForDashboards, log }));
  }

  /** A tenant with many admitted lanes is served after those with few. A bell that is not heard is rung again by the sweeper. */
  async ring(rings: readonly Ring[]): Promise<void> {
    const [first] = rings;
    if (first === undefined) return;
    // Nearly always it is one, which needs no transaction.
    if (rings.length === 1) {
      await this.queues[first.depth]?.add(jobName, dataOf(first), optionsOf(first));
      return;
    }
    for (const [depth, some] of Map.groupBy(rings, (ring) => ring.depth)) await this.queues[depth]?.addBulk(some.map(toJob));
  }

  async stop(): Promise<void> {
    await Promise.all(this.queues.map(async (queue) => await queue.close()));
  }
}

export interface AnswerOptions {
  readonly redis: Redis;
  readonly concurrency: number;
  readonly log: Log;
  readonly depth: number;
  /** The signal is aborted when the bell's own lock is lost; the lane's lease decides all the same. */
  readonly answer: (lane: Lane, signal: AbortSignal | undefined) => Promise<void>;
}

/** Takes doorbells of one depth, so many at once. */
export function answerDoorbells({ redis, depth, concurrency, log, answer }: AnswerOptions): Worker {
  return openBellWorker(doorbellQueueOf(depth), { redis, concurrency, log, kept: keptForDashboards, schema: DoorbellJob, answer });
}
