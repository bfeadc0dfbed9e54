import type { JobsOptions, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Log } from '@concierge/runtime';
import type { OutboxLane } from '@concierge/tenant';
import { bellOptions, keptForDashboards, openBellQueue, openBellWorker } from '../bell-queue.ts';
import { priorityOf } from '../doorbells.ts';
import { deliveryQueueName } from '../keys.ts';
import type { DeliveryLanes } from './delivery-lanes.ts';

/** A job names a conversation's outbox. Whoever answers takes its lease and sends one part: the one that is next, whichever that is by then. */
const DeliveryJob = z.object({ accountId: z.string(), lane: z.string() });

const jobOptions = bellOptions(keptForDashboards);
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
    this.queue = openBellQueue(deliveryQueueName, { redis, kept: keptForDashboards, log });
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
  return openBellWorker(deliveryQueueName, { redis, concurrency, log, kept: keptForDashboards, schema: DeliveryJob, answer });
}
