import type { Redis } from 'ioredis';
import { failpoint, type Log } from '@concierge/runtime';
import type { WakeOutbox, OutboxLane, Tenants, TenantScope } from '@concierge/tenant';
import { DueQueue, type DueClaim, type DueKey } from '../due/due-queue.ts';
import { DueWorker } from '../due/due-worker.ts';
import { Reconciler, type OnRepaired } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';

/** The wait after a failure of the disk or of Redis. */
const AFTER_FAILURE_MS = 10_000;
const EVERY_MS = 2000;
const SCAN_EVERY_MS = 5000;
/** Records that are kept for days are removed once a day. */
const RETENTION_EVERY_MS = 24 * 3600_000;

/** Conversations with messages to send in their outbox, named after their lanes. */
export function openDeliveryQueue(redis: Redis, log: Log): DueQueue {
  return new DueQueue({ redis, kind: 'deliveries', log });
}

/** Wakes a worker for new messages in an outbox. */
export function wakeOutboxBy(queue: DueQueue): WakeOutbox {
  return async (lane) => queue.add([{ ...toDueKey(lane), delayMs: 0 }]);
}

export function toDueKey({ tenantId, lane: name }: OutboxLane): DueKey {
  return { tenantId, name };
}

/**
 * The result of one step in a conversation. `again`: something was done, and there may be more. `parked`: there is
 * nothing to do before that time. `empty`: there is nothing to do at all.
 */
export type LaneStep = { readonly kind: 'again' } | { readonly kind: 'empty' } | { readonly kind: 'parked'; readonly untilMs: number };

/**
 * Does one thing in a conversation: tries a part, or ends a message. The caller has claimed the conversation. The
 * signal aborts when the worker must stop at once.
 */
export type DeliverNext = (scope: TenantScope, lane: string, signal: AbortSignal) => Promise<LaneStep>;

export interface DeliveryWorkerOptions {
  readonly queue: DueQueue;
  readonly tenants: Pick<Tenants, 'find'>;
  /** Conversations in which this worker sends at once. */
  readonly concurrency: number;
  readonly deliverNext: DeliverNext;
  readonly log: Log;
  readonly now?: () => number;
}

/** Sends what is due in outboxes: one thing in one conversation, then the most urgent thing at that time. */
export class DeliveryWorker {
  readonly name = 'delivery worker';
  readonly #options: DeliveryWorkerOptions;
  readonly #worker: DueWorker;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    const { queue, concurrency, log } = options;
    const handle = async (claim: DueClaim, signal: AbortSignal): Promise<number | null> => this.#deliver(claim, signal);
    this.#worker = new DueWorker({ queue, handle, concurrency, afterFailureMs: AFTER_FAILURE_MS, log });
  }

  start(): void {
    this.#worker.start();
  }

  /**
   * A part that is being sent is finished; after the grace the worker stops waiting for its answer, and the part counts
   * as unknown.
   */
  async stop(graceMs: number): Promise<void> {
    await failpoint('delivery.draining');
    await this.#worker.stop(graceMs);
  }

  /**
   * A lost claim stops nothing: a part that is being sent is finished, and no other worker can send it a second time.
   */
  async #deliver({ tenantId, name }: DueClaim, signal: AbortSignal): Promise<number | null> {
    const { tenants, deliverNext, now = Date.now } = this.#options;
    const scope = await tenants.find(tenantId);
    if (scope === undefined) return null;
    const step = await deliverNext(scope, name, signal);
    switch (step.kind) {
      case 'again': {
        return 0;
      }
      case 'empty': {
        return null;
      }
      case 'parked': {
        return Math.max(0, step.untilMs - now());
      }
    }
  }
}

interface DeliveryReconcilerOptions {
  readonly redis: Redis;
  readonly queue: DueQueue;
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'outboxLanes'>;
  readonly onRepaired?: OnRepaired;
  readonly log: Log;
}

/** Finds messages to be sent that Redis does not know: a wake-up was lost, a worker died, Redis came back empty. */
export class DeliveryReconciler extends Reconciler {
  readonly name = 'delivery reconciler';
  readonly #options: DeliveryReconcilerOptions;

  constructor(options: DeliveryReconcilerOptions) {
    super({ everyMs: EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { redis, queue, tenants } = this.#options;
    await queue.wakeLate();
    await this.share(redis, { task: keyOf.deliveryScanLock, everyMs: SCAN_EVERY_MS }, async () => {
      await this.forEachTenant(tenants, async (tenantId) => this.#addMissing(tenantId));
    });
    await this.share(redis, { task: keyOf.deliveryRetentionLock, everyMs: RETENTION_EVERY_MS }, async () => {
      await this.forEachTenant(tenants, async (tenantId) => this.#clearAway(tenantId));
    });
  }

  async #addMissing(tenantId: string): Promise<void> {
    const { tenants, queue } = this.#options;
    const found = (await tenants.outboxLanes(tenantId)).map((name) => ({ tenantId, name }));
    const missing = await queue.unknown(found);
    await queue.add(missing.map((key) => ({ ...key, delayMs: 0 })));
    this.#options.onRepaired?.('delivery', missing.length);
  }

  async #clearAway(tenantId: string): Promise<void> {
    const { outbox } = await this.#options.tenants.open(tenantId);
    await outbox.sweep();
    await outbox.forget();
  }
}
