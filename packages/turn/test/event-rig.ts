import type { EventView } from '@concierge/contract';
import { openIndex, type IndexStore } from '@concierge/index';
import { connectRedis, createLog } from '@concierge/runtime';
import { Tenants, type WebhookEventInput, type TenantScope } from '@concierge/tenant';
import { eventually, temporaryDirectory, TestRedis, WebhookReceiver } from '@concierge/testing';
import { Outbound, OutboundError } from '@concierge/web';
import type { Redis } from 'ioredis';
import {
  EventQueue,
  EventReconciler,
  eventFetchPolicy,
  EventSender,
  EventWorker,
  WebhookEvents,
  keyOf,
  queuePrefix,
} from '../src/index.ts';

const log = createLog({ service: 'test', level: 'silent' });
export const secrets = { keySecret: 'k'.repeat(32), secretsKey: 's'.repeat(32) };
const usage = { inputTokens: 12, outputTokens: 3 };

interface WorkerFacts {
  readonly allow: readonly string[];
  readonly concurrency?: number;
  /** The offset of its machine's clock. */
  readonly clockOffMs?: number;
}

/** Events over a real Redis, real files and real HTTP, with a clock that a test can put forward. */
export class EventRig implements AsyncDisposable {
  readonly redis: TestRedis;
  readonly tenants: Tenants;
  readonly queue: EventQueue;
  readonly outgoing: WebhookEvents;
  readonly reconciler: EventReconciler;
  readonly dataDir: string;
  readonly tried: string[] = [];
  aheadMs = 0;
  readonly #stack: AsyncDisposableStack;
  readonly #client: Redis;

  private constructor({
    redis,
    dataDir,
    index,
    stack,
  }: {
    redis: TestRedis;
    dataDir: string;
    index: IndexStore;
    stack: AsyncDisposableStack;
  }) {
    this.redis = redis;
    this.dataDir = dataDir;
    this.#stack = stack;
    this.tenants = new Tenants({ dataDir, index, ...secrets, log });
    const client = connectRedis({ url: redis.url, role: 'worker', log });
    this.#client = client;
    this.queue = new EventQueue(client, log);
    stack.defer(async () => {
      await this.queue.stop();
      client.disconnect();
    });
    this.outgoing = new WebhookEvents({ queue: this.queue, log });
    this.reconciler = new EventReconciler({ redis: client, queue: this.queue, tenants: this.tenants, log, now: () => this.now() });
  }

  static async start(): Promise<EventRig> {
    const stack = new AsyncDisposableStack();
    const folder = stack.use(await temporaryDirectory());
    const redis = stack.use(await TestRedis.start());
    const index = await openIndex({ databaseUrl: undefined, dataDir: folder.path, log });
    stack.defer(async () => await index.close());
    const rig = new EventRig({ redis, dataDir: folder.path, index, stack });
    await rig.tenants.create('acme');
    return rig;
  }

  now(): number {
    return Date.now() + this.aheadMs;
  }

  async scope(): Promise<TenantScope> {
    return this.tenants.open('acme');
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
    const parts = { queue: this.queue, tenants: this.tenants, sender, log };
    const worker = new EventWorker({ ...parts, onTried, now, random: () => 0.5, ...(concurrency !== undefined && { concurrency }) });
    worker.start();
    this.#stack.defer(async () => worker.stop(0));
    return worker;
  }

  /** Emits the event of an ended turn, as a worker does. */
  async turnEnds(key: string, reply = 'Hello.'): Promise<void> {
    await this.outgoing.emit(await this.scope(), turnEnded(key, reply));
  }

  /** Moves all clocks forward, also service time, and runs the reconciler. */
  async later(ms: number): Promise<void> {
    // What was tried is planned by then.
    await eventually(async () => (await this.#client.zcard(`${keyOf.dueWork('events')}:claimed`)) === 0);
    this.aheadMs += ms;
    await this.#client.hset(`${queuePrefix}:clock`, { last: this.now(), shift: this.aheadMs });
    await this.reconciler.addMissing('acme');
    await this.queue.endpoints.wakeLate();
  }

  async events(): Promise<EventView[]> {
    return (await (await this.scope()).events.list({ limit: 100 })).items;
  }

  /** The only event, as soon as it matches. */
  async eventThat(isSo: (event: EventView) => boolean): Promise<EventView> {
    return eventually(
      async () => {
        const [event] = await this.events();
        return event !== undefined && isSo(event) ? event : undefined;
      },
      { timeoutMs: 60_000 },
    );
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
