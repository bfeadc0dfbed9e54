import type { Redis } from 'ioredis';
import type { EventRecord } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { endpointIdOfEvent, type Tenants } from '@concierge/tenant';
import { Reconciler } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';
import type { EventQueue, PlannedEvent } from './event-queue.ts';

const EVERY_MS = 2000;
const SCAN_EVERY_MS = 5000;
const CLEAR_EVERY_MS = 3_600_000;

export interface EventReconcilerOptions {
  readonly redis: Redis;
  readonly queue: EventQueue;
  readonly tenants: Tenants;
  readonly log: Log;
  readonly now?: () => number;
}

/**
 * Finds waiting webhook events that Redis does not know: their sender died, Redis came back empty. Removes events past
 * their retention.
 */
export class EventReconciler extends Reconciler {
  readonly name = 'event reconciler';
  readonly #options: EventReconcilerOptions;

  constructor(options: EventReconcilerOptions) {
    super({ everyMs: EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { redis, queue, tenants } = this.#options;
    await queue.endpoints.wakeLate();
    await this.share(redis, { task: keyOf.eventScanLock, everyMs: SCAN_EVERY_MS }, async () => {
      await this.#ofEach(async (tenantId) => this.addMissing(tenantId));
    });
    await this.share(redis, { task: keyOf.eventClearLock, everyMs: CLEAR_EVERY_MS }, async () => {
      await this.#ofEach(async (tenantId) => tenants.sweepEvents(tenantId));
    });
  }

  /** Plans all waiting events of one tenant. */
  async addMissing(tenantId: string): Promise<void> {
    const { queue, tenants } = this.#options;
    const ids = await tenants.waitingEventIds(tenantId);
    for (const [name, some] of Map.groupBy(ids, endpointIdOfEvent)) {
      const endpoint = { tenantId, name };
      const missing = await queue.unknown(endpoint, some);
      if (missing.length > 0) await queue.add(endpoint, await this.#plansOf(tenantId, missing));
      await queue.endpoints.add((await queue.endpoints.unknown([endpoint])).map((key) => ({ ...key, delayMs: 0 })));
    }
  }

  async #plansOf(tenantId: string, ids: readonly string[]): Promise<PlannedEvent[]> {
    const { files } = (await this.#options.tenants.open(tenantId)).events;
    const events = await Promise.all(ids.map(async (id) => files.waiting(id)));
    const nowMs = (this.#options.now ?? Date.now)();
    return events.filter((event) => event !== undefined).map((event) => ({ id: event.id, delayMs: delayLeftMs(event, nowMs) }));
  }

  async #ofEach(task: (tenantId: string) => Promise<void>): Promise<void> {
    const { tenants, log } = this.#options;
    for (const tenantId of await tenants.list()) {
      await task(tenantId).catch((error: unknown) => {
        log.error({ err: error, tenantId }, 'cannot look through the events');
      });
    }
  }
}

/**
 * How long an event that Redis has lost still waits: at most as long as its last try recorded, by the clock that wrote
 * both times. Where this machine's clock differs, the event is tried sooner, never later.
 */
function delayLeftMs({ tries, log, nextTryAt }: EventRecord, nowMs: number): number {
  const last = log.at(-1);
  if (tries === 0 || last === undefined) return 0;
  const atMs = Date.parse(nextTryAt);
  return Math.max(0, Math.min(atMs - Date.parse(last.at), atMs - nowMs));
}
