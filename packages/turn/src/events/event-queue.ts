import type { Redis } from 'ioredis';
import { limits, type EventRecord } from '@concierge/contract';
import { unlessLater } from '@concierge/files';
import type { Log } from '@concierge/runtime';
import { DueQueue, type DueKey, type DueMember } from '../due/due-queue.ts';
import { endpointIdOfEvent, type Tenants } from '@concierge/tenant';
import { Reconciler, type OnRepaired } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';

/** Longer than a request lasts: while its endpoint is claimed, an event is claimed by the same sender. */
const EVENT_CLAIM_MS = limits.eventTimeoutMs + 5000;
const UNKNOWN_AT_ONCE = 500;
const EVERY_MS = 2000;
const SCAN_EVERY_MS = 5000;
const CLEAR_EVERY_MS = 3_600_000;

/** A waiting event, and how long until it is tried. */
export interface PlannedEvent {
  readonly id: string;
  readonly delayMs: number;
}

/**
 * When webhook events are tried: the endpoints that have something due, each for one sender at a time, and for each of
 * them its events. All of it can be thrown away: the truth stands in files.
 */
export class EventQueue {
  /** Members are named after their endpoints. */
  readonly endpoints: DueQueue;
  readonly #redis: Redis;
  readonly #log: Log;

  constructor(redis: Redis, log: Log) {
    this.#redis = redis;
    this.#log = log;
    this.endpoints = new DueQueue({ redis, kind: 'events', log });
  }

  /** The events of one endpoint. No worker is woken for them: the claimant of the endpoint polls. */
  openEndpoint({ tenantId, name }: DueKey): DueQueue {
    const kind = `events/${tenantId}/${name}`;
    return new DueQueue({ redis: this.#redis, kind, wakes: false, claimMs: EVENT_CLAIM_MS, log: this.#log });
  }

  /** Events that are planned already keep their times. */
  async add(endpoint: DueKey, events: readonly PlannedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { tenantId } = endpoint;
    const members = events.map(({ id, delayMs }): DueMember => ({ tenantId, name: id, delayMs }));
    await this.openEndpoint(endpoint).add(members, { onlyNew: true });
    await this.endpoints.add([{ ...endpoint, delayMs: Math.min(...events.map(({ delayMs }) => delayMs)) }]);
  }

  /** Finds the given events that are not planned. */
  async unknown(endpoint: DueKey, ids: readonly string[]): Promise<string[]> {
    const queue = this.openEndpoint(endpoint);
    const unknown: string[] = [];
    for (let at = 0; at < ids.length; at += UNKNOWN_AT_ONCE) {
      const keys = ids.slice(at, at + UNKNOWN_AT_ONCE).map((name) => ({ tenantId: endpoint.tenantId, name }));
      unknown.push(...(await queue.unknown(keys)).map(({ name }) => name));
    }
    return unknown;
  }

  async stop(): Promise<void> {
    await this.endpoints.stop();
  }
}

interface EventReconcilerOptions {
  readonly redis: Redis;
  readonly queue: EventQueue;
  readonly tenants: Tenants;
  readonly onRepaired?: OnRepaired;
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
      await this.forEachTenant(tenants, async (tenantId) => this.addMissing(tenantId));
    });
    await this.share(redis, { task: keyOf.eventClearLock, everyMs: CLEAR_EVERY_MS }, async () => {
      await this.forEachTenant(tenants, async (tenantId) => tenants.sweepEvents(tenantId));
    });
  }

  /** Plans all waiting events of one tenant. */
  async addMissing(tenantId: string): Promise<void> {
    const { queue, tenants } = this.#options;
    const ids = await tenants.waitingEventIds(tenantId);
    for (const [name, some] of Map.groupBy(ids, endpointIdOfEvent)) {
      const endpoint = { tenantId, name };
      const missing = await queue.unknown(endpoint, some);
      if (missing.length > 0) await queue.add(endpoint, await this.#readPlans(tenantId, missing));
      this.#options.onRepaired?.('event', missing.length);
      await queue.endpoints.add((await queue.endpoints.unknown([endpoint])).map((key) => ({ ...key, delayMs: 0 })));
    }
  }

  async #readPlans(tenantId: string, ids: readonly string[]): Promise<PlannedEvent[]> {
    const { files } = (await this.#options.tenants.open(tenantId)).events;
    const events = await Promise.all(ids.map(async (id) => unlessLater(files.waiting(id))));
    const nowMs = (this.#options.now ?? Date.now)();
    return events.filter((event) => event !== undefined).map((event) => ({ id: event.id, delayMs: delayLeftMs(event, nowMs) }));
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
