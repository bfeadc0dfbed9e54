import { Queue, Worker, type Job as TakenJob, type JobsOptions, type Span } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { limits } from '@concierge/contract';
import { duringActivity, type Log } from '@concierge/runtime';
import { wakeupQueueName, type Lane, queuePrefix } from '../keys.ts';

/** A lane that may run now: the caller must send a wake-up for it. */
export interface Wakeup extends Lane {
  /** The head of the lane, for the dashboards. */
  readonly turnId: string;
  /** Admitted lanes of the tenant at this depth: the more it has, the later it is served. */
  readonly backlog: number;
  readonly at: number;
  /**
   * How many turns stand above the head: the worker that answers the wake-up has slots for each depth (see lanes.lua).
   */
  readonly depth: number;
}

/** How many answered wake-ups are kept in a queue: enough for the dashboards. */
export const keptWakeups = 1000;
const kept = {
  removeOnComplete: { age: 3600, count: keptWakeups },
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

/** The same for scripts that send wake-ups (lua/wakeups.lua). */
export const sentByScripts = { options: jobOptions, maxPriority: MAX_PRIORITY } as const;

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
  readonly answer: (take: Payload, wakeup: TakenWakeup) => Promise<void>;
}

/** The job of a wake-up while it is answered. */
export interface TakenWakeup {
  readonly queue: string;
  readonly id: string;
  readonly token: string;
  /** Set when a script has completed the job (lua/wakeups.lua). */
  isCompleted: boolean;
}

/** Leaves jobs alone that are completed when their answer is there. */
class WakeupWorker extends Worker {
  protected override async handleCompleted(
    ...[isCompleted, ...given]: [unknown, TakenJob, string, (() => boolean)?, Span?]
  ): Promise<TakenJob> {
    if (isCompleted !== true) return await super.handleCompleted(undefined, ...given);
    // As after a completion that has found no next job.
    return await this.nextJobFromJobData();
  }
}

/**
 * Answers wake-ups, `concurrency` at once, after `run`. Which of BullMQ's defaults do not fit and why:
 * docs/decisions/0002-wake-ups-and-leases.md.
 */
export function openWakeupWorker<Payload>(name: string, options: WakeupWorkerOptions<Payload>): Worker {
  const { redis, log, concurrency, schema, answer } = options;
  const worker = new WakeupWorker(
    name,
    async (job, token) => {
      const wakeup = { queue: name, id: job.id ?? '', token: token ?? '', isCompleted: false };
      await duringActivity({ queue: name, job: wakeup.id }, async () => answer(schema.parse(job.data), wakeup));
      return wakeup.isCompleted;
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
  /** A job whose own lock is lost is answered all the same: the lane's lease decides. */
  readonly answer: (lane: Lane, wakeup: TakenWakeup) => Promise<void>;
}

/** Answers wake-ups of one depth, `concurrency` at once. */
export function takeWakeups({ redis, depth, concurrency, log, answer }: AnswerOptions): Worker {
  return openWakeupWorker(wakeupQueueName(depth), { redis, concurrency, log, schema: WakeupJob, answer });
}
