import { HOUR_MS, type EventView } from '@concierge/contract';
import type { WebhookEventInput, TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log, WebhookReceiver, type TestRedis } from '@concierge/testing';
import { TestCore } from '@concierge/testing/core';
import { Outbound, OutboundError } from '@concierge/web';
import {
  type EventQueue,
  EventReconciler,
  eventFetchPolicy,
  EventSender,
  EventWorker,
  type WebhookEvents,
  keyOf,
  queuePrefix,
} from '../src/index.ts';

const usage = { inputTokens: 12, outputTokens: 3 };

interface WorkerFacts {
  readonly allow: readonly string[];
  readonly concurrency?: number;
  /** The offset of its machine's clock. */
  readonly clockOffMs?: number;
}

/** Events over a real Redis, real files and real HTTP, with a clock that a test can put forward. */
export class TestEvents implements AsyncDisposable {
  readonly redis: TestRedis;
  readonly queue: EventQueue;
  readonly outgoing: WebhookEvents;
  readonly reconciler: EventReconciler;
  readonly dataDir: string;
  readonly tried: string[] = [];
  aheadMs = 0;
  #heldMs: number | undefined;
  readonly #opened: TestCore;
  readonly #stack: AsyncDisposableStack;

  private constructor(opened: TestCore, stack: AsyncDisposableStack) {
    this.redis = opened.server;
    this.dataDir = opened.dataDir;
    this.#opened = opened;
    this.#stack = stack;
    const { redis, tenants, events } = opened.core;
    ({ queue: this.queue, outgoing: this.outgoing } = events);
    this.reconciler = new EventReconciler({ redis, queue: this.queue, tenants, log, now: () => this.now() });
  }

  static async start(): Promise<TestEvents> {
    await using opened = new AsyncDisposableStack();
    const core = opened.use(await TestCore.start());
    // No reconciler notes the time here; service time would stand still soon after a note.
    await core.core.redis.del(`${queuePrefix}:clock`);
    return new TestEvents(core, opened.move());
  }

  now(): number {
    return this.#heldMs ?? Date.now() + this.aheadMs;
  }

  async scope(): Promise<TenantScope> {
    return this.#opened.scope();
  }

  async receiver(): Promise<WebhookReceiver> {
    return this.#stack.use(await WebhookReceiver.start());
  }

  /** The objects of one worker; `allow`: hosts that its operator has opened. */
  worker({ allow, concurrency, clockOffMs = 0 }: WorkerFacts): EventWorker {
    const now = (): number => this.now() + clockOffMs;
    const sender = new EventSender({
      fetch: new Outbound({ allow }).fetcher(eventFetchPolicy),
      explain: (error) => (error instanceof OutboundError ? error.message : undefined),
      now: () => Date.now() + clockOffMs,
    });
    const onTried = (type: string, outcome: string): void => void this.tried.push(`${type} ${outcome}`);
    const parts = { queue: this.queue, tenants: this.#opened.core.tenants, sender, log };
    const worker = new EventWorker({ ...parts, onTried, now, random: () => 0.5, ...(concurrency !== undefined && { concurrency }) });
    worker.start();
    this.#stack.defer(async () => worker.stop(0));
    return worker;
  }

  /** Emits the event of an ended turn, as a worker does. */
  async turnEnds(key: string, reply = 'Hello.'): Promise<void> {
    await this.outgoing.emit(await this.scope(), turnEnded(key, reply));
  }

  /**
   * Service time stands still until `later` moves it: what is to be tried again in some seconds waits, however slow the
   * machine is.
   */
  async holdTime(): Promise<void> {
    this.#heldMs = this.now();
    await this.#setTime();
  }

  /** A clock that was set far back holds service time where it is. */
  async #setTime(): Promise<void> {
    const clock = this.#heldMs === undefined ? { last: this.now(), shift: this.aheadMs } : { last: this.#heldMs, shift: -HOUR_MS };
    await this.#opened.core.redis.hset(`${queuePrefix}:clock`, clock);
  }

  /** Moves all clocks forward, also service time, and runs the reconciler. */
  async later(ms: number): Promise<void> {
    // What was tried is planned by then.
    await eventually(async () => (await this.#opened.core.redis.zcard(`${keyOf.dueWork('events')}:claimed`)) === 0);
    this.aheadMs += ms;
    if (this.#heldMs !== undefined) this.#heldMs += ms;
    await this.#setTime();
    await this.reconciler.addMissing('acme');
    await this.queue.endpoints.wakeLate();
  }

  async events(): Promise<EventView[]> {
    return (await (await this.scope()).events.list({ limit: 100 })).items;
  }

  /** The only event, as soon as it matches. */
  async eventThat(isSo: (event: EventView) => boolean): Promise<EventView> {
    return eventually(async () => {
      const [event] = await this.events();
      return event !== undefined && isSo(event) ? event : undefined;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export function turnEnded(key: string, reply = 'Hello.'): WebhookEventInput<'turn.completed'> {
  const at = '2026-11-21T20:00:00.000Z';
  const conversation = { contact_id: '0'.repeat(32), agent: 'cs', channel: 'web', origin: 'api' } as const;
  const data = { turnId: key, ...conversation, acceptedAt: at, usage, finishReason: 'stop' } as const;
  return { type: 'turn.completed', key, at, data, text: async () => Promise.resolve(reply) };
}
