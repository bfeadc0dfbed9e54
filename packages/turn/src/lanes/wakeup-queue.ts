import { Queue, Worker, type JobsOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { limits } from '@concierge/contract';
import { duringActivity, type Log } from '@concierge/runtime';
import { wakeupQueueName, type Lane, queuePrefix } from '../keys.ts';
import type { Wakeup } from './lanes.ts';

/** What BullMQ keeps of answered wake-ups: enough for the dashboards. */
const kept = {
  removeOnComplete: { age: 3600, count: 1000 },
  removeOnFail: { age: 24 * 3600, count: 1000 },
} as const;

/** A wake-up contains a few ids and is tried once; a reconciler sends another where it was lost. */
export const jobOptions: JobsOptions = { attempts: 1, sizeLimit: 1024, ...kept };

/** BullMQ's largest priority is 2^21; all wake-ups carry one, since a job without one would go before all others. */
const MAX_PRIORITY = 1000;

/** The larger a tenant's backlog, the lower its priority: a tenant with few jobs does not wait behind one with many. */
export function toPriority(backlog: number): number {
  return Math.min(Math.max(backlog, 1), MAX_PRIORITY);
}

/** A wake-up to be added to its queue. */
interface Job<Payload> {
  readonly name: string;
  readonly data: Payload;
  readonly opts: JobsOptions & { readonly jobId: string };
}

/** Nearly always there is one wake-up, which needs no transaction. */
export async function addJobs<Payload>(queue: Queue, jobs: readonly Job<Payload>[]): Promise<void> {
  const [first] = jobs;
  if (jobs.length === 1 && first !== undefined) await queue.add(first.name, first.data, first.opts);
  else await queue.addBulk([...jobs]);
}

interface WakeupQueueOptions {
  readonly redis: Redis;
  readonly log: Log;
}

/** The caller closes the queue. */
export function openWakeupQueue(name: string, { redis, log }: WakeupQueueOptions): Queue {
  const queue = new Queue(name, {
    connection: redis,
    prefix: queuePrefix,
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: 100 } },
    skipWaitingForReady: true,
  });
  queue.on('error', (error) => {
    log.debug({ err: error, queue: name }, 'wake-up queue');
  });
  return queue;
}

interface WakeupWorkerOptions<Payload> extends WakeupQueueOptions {
  readonly concurrency: number;
  /** The payload of a wake-up. */
  readonly schema: z.ZodType<Payload>;
  /** The signal aborts when the job's own lock is lost; the handler's lease decides. */
  readonly answer: (take: Payload, signal: AbortSignal | undefined) => Promise<void>;
}

/**
 * Answers wake-ups, `concurrency` at once, after `run`. Which of BullMQ's defaults do not fit and why:
 * docs/decisions/0002-wake-ups-and-leases.md.
 */
export function openWakeupWorker<Payload>(name: string, options: WakeupWorkerOptions<Payload>): Worker {
  const { redis, log, concurrency, schema, answer } = options;
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

/**
 * A job is a wake-up: it names a lane, and the worker that answers takes the lane's lease and runs its head. Losing,
 * doubling or reordering jobs changes nothing (docs/decisions/0002-wake-ups-and-leases.md).
 */
const WakeupJob = z.object({ tenantId: z.string(), sessionId: z.string(), turnId: z.string() });

function toJob({ tenantId, sessionId, turnId, at, backlog }: Wakeup): Job<z.infer<typeof WakeupJob>> {
  const opts = { ...jobOptions, jobId: `${turnId}.${String(at)}`, priority: toPriority(backlog) };
  return { name: 'turn', data: { tenantId, sessionId, turnId }, opts };
}

/** A queue for each depth at which a turn can stand. */
export const depths: readonly number[] = Array.from({ length: limits.subagentDepthMax + 1 }, (_, depth) => depth);

export class WakeupQueue {
  /** The queues, by depth. */
  readonly queues: readonly Queue[];

  constructor(redis: Redis, log: Log) {
    this.queues = depths.map((depth) => openWakeupQueue(wakeupQueueName(depth), { redis, log }));
  }

  /**
   * A tenant with many admitted lanes is served after tenants with few. The reconciler repeats a wake-up that is not
   * answered.
   */
  async wake(wakeups: readonly Wakeup[]): Promise<void> {
    for (const [depth, some] of Map.groupBy(wakeups, (wakeup) => wakeup.depth)) {
      const queue = this.queues[depth];
      if (queue !== undefined) await addJobs(queue, some.map(toJob));
    }
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
  /** The signal aborts when the job's own lock is lost; the lane's lease decides all the same. */
  readonly answer: (lane: Lane, signal: AbortSignal | undefined) => Promise<void>;
}

/** Answers wake-ups of one depth, `concurrency` at once. */
export function takeWakeups({ redis, depth, concurrency, log, answer }: AnswerOptions): Worker {
  return openWakeupWorker(wakeupQueueName(depth), { redis, concurrency, log, schema: WakeupJob, answer });
}
