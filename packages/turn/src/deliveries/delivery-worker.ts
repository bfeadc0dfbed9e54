import type { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { background, failpoint, type Log } from '@concierge/runtime';
import type { OutboxLane, Tenants, TenantScope } from '@concierge/tenant';
import { answerDeliveryBells, type DeliveryBells } from './delivery-bells.ts';
import type { DeliveryLanes, DeliveryLease } from './delivery-lanes.ts';

const KEEP_EVERY_MS = 3000;
/** A disk or a Redis that fails is given so long. */
const AFTER_FAILURE_MS = 10_000;

/**
 * What is to be done next in a conversation. `again`: something was done, and there may be more. `parked`: nothing before that time.
 * `empty`: nothing at all.
 */
export type LaneStep = { readonly kind: 'again' } | { readonly kind: 'empty' } | { readonly kind: 'parked'; readonly untilMs: number };

/**
 * Does one thing in a conversation: tries a part, or ends a message. The caller holds the conversation's lease. The signal is aborted when the worker must
 * stop at once.
 */
export type DeliverNext = (scope: TenantScope, lane: string, signal: AbortSignal) => Promise<LaneStep>;

export interface DeliveryWorkerOptions {
  readonly redis: Redis;
  readonly lanes: DeliveryLanes;
  readonly bells: DeliveryBells;
  readonly tenants: Tenants;
  /** Conversations in which this worker sends at once. */
  readonly concurrency: number;
  readonly deliverNext: DeliverNext;
  readonly log: Log;
  readonly now?: () => number;
}

/** Answers the doorbells of outboxes: takes the conversation's lease, does what is next, and rings for what follows. */
export class DeliveryWorker {
  readonly name = 'delivery worker';
  readonly #options: DeliveryWorkerOptions;
  readonly #bells: Worker;
  readonly #held = new Set<DeliveryLease>();
  readonly #stop = new AbortController();
  #pulse: NodeJS.Timeout | undefined;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    const { redis, concurrency, log } = options;
    this.#bells = answerDeliveryBells({ redis, concurrency, log, answer: async (lane) => this.answer(lane) });
  }

  start(): void {
    const { log } = this.#options;
    this.#pulse = setInterval(() => {
      background(this.#keep(), log);
    }, KEEP_EVERY_MS);
    background(this.#bells.run(), log);
  }

  /** A part that is being sent is finished; after the grace nobody waits for its answer any more, and it counts as unknown. */
  async stop(graceMs: number): Promise<void> {
    await failpoint('delivery.draining');
    const timer = setTimeout(() => {
      this.#stop.abort(new Error('the worker stops'));
    }, graceMs);
    await this.#bells.close();
    clearTimeout(timer);
    clearInterval(this.#pulse);
  }

  /** One bell. */
  async answer(lane: OutboxLane): Promise<void> {
    const { lanes, bells } = this.#options;
    const lease = await lanes.take(lane);
    if (lease === undefined) return;
    this.#held.add(lease);
    const step = await this.#step(lane);
    this.#held.delete(lease);
    await lanes.release(lease, { isEmpty: step.kind === 'empty' });
    // Whoever rang meanwhile was sent away: what came after the last look is seen now.
    if (step.kind === 'empty' && (await this.#isEmpty(lane))) return;
    await bells.ring(lane, step.kind === 'parked' ? step.untilMs : undefined);
  }

  async #step(lane: OutboxLane): Promise<LaneStep> {
    try {
      const scope = await this.#scopeOf(lane);
      return scope === undefined ? { kind: 'empty' } : await this.#options.deliverNext(scope, lane.lane, this.#stop.signal);
    } catch (error) {
      this.#options.log.error({ ...lane, err: error }, 'a delivery failed inside the service');
      return { kind: 'parked', untilMs: this.#nowMs() + AFTER_FAILURE_MS };
    }
  }

  async #isEmpty(lane: OutboxLane): Promise<boolean> {
    return (await (await this.#scopeOf(lane))?.outbox.isEmpty(lane.lane)) ?? true;
  }

  /** undefined when the tenant has been deleted: its bells may ring for a while. */
  async #scopeOf({ accountId }: OutboxLane): Promise<TenantScope | undefined> {
    return this.#options.tenants.find(accountId);
  }

  async #keep(): Promise<void> {
    const { lanes, log } = this.#options;
    for (const lease of this.#held) {
      // What is being sent is finished all the same: nobody can send it a second time.
      if (!(await lanes.keep(lease))) log.warn({ accountId: lease.accountId, lane: lease.lane }, 'the lease of a conversation was lost');
    }
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}
