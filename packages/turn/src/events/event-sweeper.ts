import type { Redis } from 'ioredis';
import { background, type Log } from '@concierge/runtime';
import type { EventRecord } from '@concierge/contract';
import { endpointIdOfEvent, type Tenants } from '@concierge/tenant';
import { keyOf } from '../keys.ts';
import { takeTask } from '../take-task.ts';
import type { EventBells, PlannedEvent } from './event-bells.ts';

const TICK_EVERY_MS = 2000;
const SCAN_EVERY_AT_LEAST_MS = 5000;
/** A look at what waits costs at most a twentieth of one replica's time. */
const SCAN_LOAD = 20;
const CLEAR_EVERY_MS = 3_600_000;
const ASKED_AT_ONCE = 500;

export interface EventSweeperOptions {
  readonly redis: Redis;
  readonly bells: EventBells;
  readonly tenants: Tenants;
  readonly log: Log;
  readonly now?: () => number;
}

/** Finds events that wait and that nobody comes for: the bell was lost, its sender died, Redis came back empty. Clears away those that were kept long enough. */
export class EventSweeper {
  readonly name = 'event sweeper';
  readonly #options: EventSweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #lastScanMs = 0;

  constructor(options: EventSweeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#sweeping !== undefined) return;
      this.#sweeping = this.sweep().finally(() => {
        this.#sweeping = undefined;
      });
      background(this.#sweeping, this.#options.log);
    }, TICK_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping?.catch(() => undefined);
  }

  /** One round, unless another replica has just made one. */
  async sweep(): Promise<void> {
    const { redis } = this.#options;
    const every = Math.max(SCAN_EVERY_AT_LEAST_MS, this.#lastScanMs * SCAN_LOAD);
    if (!(await takeTask(redis, keyOf.eventScanLock, { forMs: every }))) return;
    const began = performance.now();
    await this.#ofEach(async (accountId) => this.layTenant(accountId));
    this.#lastScanMs = performance.now() - began;
    if (await takeTask(redis, keyOf.eventClearLock, { forMs: CLEAR_EVERY_MS }))
      await this.#ofEach(async (accountId) => this.#options.tenants.sweepEvents(accountId));
  }

  /** Plans and rings for all that waits of one tenant. */
  async layTenant(accountId: string): Promise<void> {
    const { bells, tenants } = this.#options;
    const ids = await tenants.waitingEventIds(accountId);
    for (const [endpointId, some] of Map.groupBy(ids, endpointIdOfEvent)) {
      const place = { accountId, endpointId };
      for (let at = 0; at < some.length; at += ASKED_AT_ONCE) {
        const missing = await bells.unplanned(place, some.slice(at, at + ASKED_AT_ONCE));
        if (missing.length > 0) await bells.lay(place, await this.#plansOf(accountId, missing));
      }
      await bells.ringAgain(place);
    }
  }

  async #plansOf(accountId: string, ids: readonly string[]): Promise<PlannedEvent[]> {
    const { files } = (await this.#options.tenants.open(accountId)).events;
    const events = await Promise.all(ids.map(async (id) => files.waiting(id)));
    const nowMs = (this.#options.now ?? Date.now)();
    return events.filter((event) => event !== undefined).map((event) => ({ id: event.id, delayMs: delayLeftMs(event, nowMs) }));
  }

  async #ofEach(task: (accountId: string) => Promise<void>): Promise<void> {
    const { tenants, log } = this.#options;
    for (const accountId of await tenants.list()) {
      await task(accountId).catch((error: unknown) => {
        log.error({ err: error, accountId }, 'cannot look through the events');
      });
    }
  }
}

/**
 * How long an event that Redis has lost still waits. At most as long as its last try said, by the clock that wrote both times: where this machine's clock is
 * another, it is tried sooner, never later.
 */
function delayLeftMs({ tries, log, nextTryAt }: EventRecord, nowMs: number): number {
  const last = log.at(-1);
  if (tries === 0 || last === undefined) return 0;
  const atMs = Date.parse(nextTryAt);
  return Math.max(0, Math.min(atMs - Date.parse(last.at), atMs - nowMs));
}
