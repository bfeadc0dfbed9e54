import { Queue, Worker, type JobsOptions, type WorkerOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import { duringActivity, type Log } from '@concierge/runtime';
import { queuePrefix } from './keys.ts';

/** What BullMQ keeps of answered wake-ups. */
export type KeptWakeups = Required<Pick<WorkerOptions, 'removeOnComplete' | 'removeOnFail'>>;

/** Enough for the dashboards. */
export const keptForDashboards = {
  removeOnComplete: { age: 3600, count: 1000 },
  removeOnFail: { age: 24 * 3600, count: 1000 },
} as const satisfies KeptWakeups;

/** A wake-up contains a few ids and is tried once; a reconciler sends another where it was lost. */
export function wakeupOptions(kept: KeptWakeups): JobsOptions {
  return { attempts: 1, sizeLimit: 1024, ...kept };
}

export interface WakeupQueueOptions {
  readonly redis: Redis;
  readonly kept: KeptWakeups;
  readonly log: Log;
}

/** The caller closes the queue. */
export function openWakeupQueue(name: string, { redis, kept, log }: WakeupQueueOptions): Queue {
  const queue = new Queue(name, {
    connection: redis,
    prefix: queuePrefix,
    defaultJobOptions: wakeupOptions(kept),
    streams: { events: { maxLen: 100 } },
    skipWaitingForReady: true,
  });
  queue.on('error', (error) => {
    log.debug({ err: error, queue: name }, 'wake-up queue');
  });
  return queue;
}

export interface WakeupWorkerOptions<Payload> extends WakeupQueueOptions {
  readonly concurrency: number;
  /** The payload of a wake-up. */
  readonly schema: z.ZodType<Payload>;
  /** The signal aborts when the job's own lock is lost; the handler's lease decides. */
  readonly answer: (take: Payload, signal: AbortSignal | undefined) => Promise<void>;
}

/**
 * Answers wake-ups, `concurrency` at once, after `run`. Settings: design/reliability, "Settings that the defaults get
 * wrong".
 */
export function openWakeupWorker<Payload>(name: string, options: WakeupWorkerOptions<Payload>): Worker {
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
    log.debug({ err: error, queue: name }, 'wake-up worker');
  });
  return worker;
}
