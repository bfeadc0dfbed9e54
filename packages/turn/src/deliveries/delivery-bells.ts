import { Queue, Worker, type JobsOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Log } from '@concierge/runtime';
import type { OutboxLane } from '@concierge/tenant';
import { priorityOf } from '../doorbells.ts';
import { deliveryQueueName, queuePrefix } from '../keys.ts';
import type { DeliveryLanes } from './delivery-lanes.ts';

/** A job names a conversation's outbox. Whoever answers takes its lease and sends one part: the one that is next, whichever that is by then. */
const DeliveryJob = z.object({ accountId: z.string(), lane: z.string() });

const kept = { removeOnComplete: { age: 3600, count: 1000 }, removeOnFail: { age: 24 * 3600, count: 1000 } } as const;
const jobOptions: JobsOptions = { attempts: 1, sizeLimit: 1024, ...kept };
const jobName = 'part';

export interface DeliveryBellsOptions {
  readonly redis: Redis;
  readonly lanes: DeliveryLanes;
  readonly log: Log;
  readonly now?: () => number;
}

/** Doorbells for outboxes: a job for each part that is to be sent, parked until its time where that has not come. */
export class DeliveryBells {
  readonly queue: Queue;
  readonly #lanes: DeliveryLanes;
  readonly #now: () => number;

  constructor({ redis, lanes, log, now = Date.now }: DeliveryBellsOptions) {
    this.#lanes = lanes;
    this.#now = now;
    this.queue = new Queue(deliveryQueueName, {
      connection: redis,
      prefix: queuePrefix,
      defaultJobOptions: jobOptions,
      streams: { events: { maxLen: 100 } },
      skipWaitingForReady: true,
    });
    this.queue.on('error', (error) => {
      log.debug({ err: error }, 'delivery queue');
    });
  }

  /** Rings for a conversation, now or at its time. One that is not heard is rung again by the sweeper. */
  async ring(lane: OutboxLane, atMs = this.#now()): Promise<void> {
    const delay = Math.max(0, atMs - this.#now());
    const backlog = await this.#lanes.expectBell(lane, delay);
    if (backlog === 0) return;
    // The same conversation parked until the same time is one job.
    await this.#add(lane, { backlog, ...(delay > 0 && { jobId: `${lane.accountId}.${lane.lane}.${String(atMs)}`, delay }) });
  }

  /** For one whose bell was lost, as `DeliveryLanes.late` says. */
  async ringAgain(lane: OutboxLane): Promise<void> {
    await this.#add(lane, { backlog: await this.#lanes.backlogOf(lane.accountId) });
  }

  async stop(): Promise<void> {
    await this.queue.close();
  }

  /** A tenant with much to send is served after those with little. */
  async #add({ accountId, lane }: OutboxLane, { backlog, ...options }: JobsOptions & { readonly backlog: number }): Promise<void> {
    await this.queue.add(jobName, { accountId, lane }, { ...jobOptions, ...options, priority: priorityOf(backlog) });
  }
}

export interface AnswerDeliveriesOptions {
  readonly redis: Redis;
  readonly concurrency: number;
  readonly log: Log;
  readonly answer: (lane: OutboxLane) => Promise<void>;
}

export function answerDeliveryBells({ redis, concurrency, log, answer }: AnswerDeliveriesOptions): Worker {
  const worker = new Worker(
    deliveryQueueName,
    async (job) => {
      await answer(DeliveryJob.parse(job.data));
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
    log.debug({ err: error }, 'delivery worker');
  });
  return worker;
}
