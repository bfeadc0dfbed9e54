import { Queue, Worker, type JobsOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { limits } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { doorbellQueueOf, queuePrefix, type Lane } from './keys.ts';
import type { Ring } from './lanes.ts';

/**
 * A job is a doorbell: it names a lane, and whoever answers takes the lane's lease and runs its head. Losing, doubling or
 * reordering jobs changes nothing (docs/decisions/doorbells.md).
 */
const DoorbellJob = z.object({ accountId: z.string(), sessionId: z.string(), turnId: z.string() });

const jobOptions: JobsOptions = {
  attempts: 1,
  removeOnComplete: { age: 3600, count: 1000 },
  removeOnFail: { age: 24 * 3600, count: 1000 },
  sizeLimit: 1024,
};

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
    this.queues = depths.map((depth) => openQueue(doorbellQueueOf(depth), redis, log));
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

function openQueue(name: string, redis: Redis, log: Log): Queue {
  const queue = new Queue(name, {
    connection: redis,
    prefix: queuePrefix,
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: 100 } },
    skipWaitingForReady: true,
  });
  queue.on('error', (error) => {
    log.debug({ err: error }, 'doorbell queue');
  });
  return queue;
}

export interface AnswerOptions {
  readonly redis: Redis;
  readonly concurrency: number;
  readonly log: Log;
  readonly depth: number;
  /** The signal is aborted when the bell's own lock is lost; the lane's lease decides all the same. */
  readonly answer: (lane: Lane, signal: AbortSignal | undefined) => Promise<void>;
}

/** Takes doorbells of one depth, so many at once. Settings: design/reliability, "Settings that the defaults get wrong". */
export function answerDoorbells({ redis, depth, concurrency, log, answer }: AnswerOptions): Worker {
  const worker = new Worker(
    doorbellQueueOf(depth),
    // Exactly three parameters: BullMQ passes the signal only to such a function.
    async (job, _token, signal) => {
      await answer(DoorbellJob.parse(job.data), signal);
    },
    {
      connection: redis,
      prefix: queuePrefix,
      concurrency,
      autorun: false,
      lockDuration: 10_000,
      stalledInterval: 5000,
      maxStalledCount: 1000,
      removeOnComplete: { age: 3600, count: 1000 },
      removeOnFail: { age: 24 * 3600, count: 1000 },
    },
  );
  worker.on('error', (error) => {
    log.debug({ err: error }, 'doorbell worker');
  });
  return worker;
}
