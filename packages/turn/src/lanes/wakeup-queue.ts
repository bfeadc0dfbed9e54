import type { JobsOptions, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { limits } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { wakeupOptions, keptForDashboards, openWakeupQueue, openWakeupWorker } from './wakeup-jobs.ts';
import { wakeupQueueName, type Lane } from '../keys.ts';
import type { Wakeup } from './lanes.ts';

/**
 * A job is a wake-up: it names a lane, and whoever answers takes the lane's lease and runs its head. Losing, doubling or
 * reordering jobs changes nothing (docs/decisions/0002-wake-ups-and-leases.md).
 */
const WakeupJob = z.object({ tenantId: z.string(), sessionId: z.string(), turnId: z.string() });

const jobOptions = wakeupOptions(keptForDashboards);

/** BullMQ's largest priority is 2^21; all wakeupQueue carry one, since none would beat them all. */
const MAX_PRIORITY = 1000;

/** The more a tenant has to be done, the later each of it is: whoever has little is not behind whoever has much. */
export function priorityOf(backlog: number): number {
  return Math.min(Math.max(backlog, 1), MAX_PRIORITY);
}

const jobName = 'turn';

function dataOf({ tenantId, sessionId, turnId }: Wakeup): z.infer<typeof WakeupJob> {
  return { tenantId, sessionId, turnId };
}

function optionsOf({ turnId, at, backlog }: Wakeup): JobsOptions & { readonly jobId: string } {
  return { ...jobOptions, jobId: `${turnId}.${String(at)}`, priority: priorityOf(backlog) };
}

function toJob(wake: Wakeup): { name: string; data: z.infer<typeof WakeupJob>; opts: JobsOptions & { readonly jobId: string } } {
  return { name: jobName, data: dataOf(wake), opts: optionsOf(wake) };
}

/** A queue for each depth at which a turn can stand. */
export const depths: readonly number[] = Array.from({ length: limits.subagentDepthMax + 1 }, (_, depth) => depth);

export class WakeupQueue {
  /** By depth. */
  readonly queues: readonly Queue[];

  constructor(redis: Redis, log: Log) {
    this.queues = depths.map((depth) => openWakeupQueue(wakeupQueueName(depth), { redis, kept: keptForDashboards, log }));
  }

  /** A tenant with many admitted lanes is served after those with few. A wake-up that is not heard is woken again by the reconciler. */
  async wake(wakeups: readonly Wakeup[]): Promise<void> {
    const [first] = wakeups;
    if (first === undefined) return;
    // Nearly always it is one, which needs no transaction.
    if (wakeups.length === 1) {
      await this.queues[first.depth]?.add(jobName, dataOf(first), optionsOf(first));
      return;
    }
    for (const [depth, some] of Map.groupBy(wakeups, (wake) => wake.depth)) await this.queues[depth]?.addBulk(some.map(toJob));
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
  /** The signal is aborted when the wake-up's own lock is lost; the lane's lease decides all the same. */
  readonly answer: (lane: Lane, signal: AbortSignal | undefined) => Promise<void>;
}

/** Takes wakeupQueue of one depth, so many at once. */
export function takeWakeups({ redis, depth, concurrency, log, answer }: AnswerOptions): Worker {
  return openWakeupWorker(wakeupQueueName(depth), { redis, concurrency, log, kept: keptForDashboards, schema: WakeupJob, answer });
}
