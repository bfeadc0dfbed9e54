import type { Redis } from 'ioredis';
import { limits } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { DueQueue, type DueKey, type DueMember } from '../due/due-queue.ts';

/** Longer than a request lasts: while its endpoint is claimed, an event is claimed by the same sender. */
const EVENT_CLAIM_MS = limits.eventTimeoutMs + 5000;
const UNKNOWN_AT_ONCE = 500;

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
  eventsOf({ tenantId, name }: DueKey): DueQueue {
    const kind = `events/${tenantId}/${name}`;
    return new DueQueue({ redis: this.#redis, kind, wakes: false, claimMs: EVENT_CLAIM_MS, log: this.#log });
  }

  /** Events that are planned already keep their times. */
  async add(endpoint: DueKey, events: readonly PlannedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { tenantId } = endpoint;
    const members = events.map(({ id, delayMs }): DueMember => ({ tenantId, name: id, delayMs }));
    await this.eventsOf(endpoint).add(members, { onlyNew: true });
    await this.endpoints.add([{ ...endpoint, delayMs: Math.min(...events.map(({ delayMs }) => delayMs)) }]);
  }

  /** Finds the given events that are not planned. */
  async unknown(endpoint: DueKey, ids: readonly string[]): Promise<string[]> {
    const queue = this.eventsOf(endpoint);
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
