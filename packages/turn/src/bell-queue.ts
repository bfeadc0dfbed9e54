import { Queue, Worker, type JobsOptions, type WorkerOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import { duringActivity, type Log } from '@concierge/runtime';
import { queuePrefix } from './keys.ts';

/** What BullMQ keeps of bells that have been answered. */
export type KeptBells = Required<Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'>>;

/** Enough for the dashboards. */
export const keptForDashboards = {
  removeOnComplete: { age: 3600, count: 1000 },
  removeOnFail: { age: 24 * 3600, count: 1000 },
} as const satisfies KeptBells;

/** A bell names a place in a few ids, is tried once, and is rung again by a sweeper where nobody heard it. */
export function bellOptions(kept: KeptBells): JobsOptions {
  return { attempts: 1, sizeLimit: 1024, ...kept };
}

export interface BellQueueOptions {
  readonly redis: Redis;
  readonly kept: KeptBells;
  readonly log: Log;
}

/** Whoever opens it closes it. */
export function openBellQueue(name: string, { redis, kept, log }: BellQueueOptions): Queue {
  const queue = new Queue(name, {
    connection: redis,
    prefix: queuePrefix,
    defaultJobOptions: bellOptions(kept),
    streams: { events: { maxLen: 100 } },
    skipWaitingForReady: true,
  });
  queue.on('error', (error) => {
    log.debug({ err: error, queue: name }, 'bell queue');
  });
  return queue;
}

export interface BellWorkerOptions<Bell> extends BellQueueOptions {
  readonly concurrency: number;
  /** What a bell names. */
  readonly schema: z.ZodType<Bell>;
  /** The signal is aborted when the bell's own lock is lost; whoever answers has a lease of its own that decides. */
  readonly answer: (bell: Bell, signal: AbortSignal | undefined) => Promise<void>;
}

/** Answers bells, so many at once, when it is run. Settings: design/reliability, "Settings that the defaults get wrong". */
export function openBellWorker<Bell>(name: string, options: BellWorkerOptions<Bell>): Worker {
  const { redis, kept, log, concurrency, schema, answer } = options;
  const worker = new Worker(
    name,
    // Exactly three parameters: BullMQ passes the signal only to such a function.
    async (job, _token, signal) => {
      await duringActivity({ queue: name, job: job.id ?? '' }, async () => answer(schema.parse(job.data), signal));
    },
    {
      connection: redis,
      prefix: queuePrefix,
      concurrency,
      autorun: false,
      lockDuration: 10_000,
      stalledInterval: 5000,
      maxStalledCount: 1000,
      ...kept,
    },
  );
  worker.on('error', (error) => {
    log.debug({ err: error, queue: name }, 'bell worker');
  });
  return worker;
}
