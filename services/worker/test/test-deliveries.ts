import type { MessagingChannel, ChannelSettings } from '@concierge/contract';
import { providerUrls, type ProviderUrls } from '@concierge/channel';
import { connectRedis } from '@concierge/runtime';
import { deriveSessionId, type Tenants, type Delivery, type NewOutbound, type OutboxLane, type TenantScope } from '@concierge/tenant';
import { FakeTelegram, silentLog as log, TestRedis, TestTenants } from '@concierge/testing';
import {
  DeliveryPace,
  DeliveryReceipts,
  DeliveryReconciler,
  DeliveryWorker,
  openDeliveryQueue,
  type DeliverNext,
  type DueQueue,
  type LaneStep,
} from '@concierge/turn';
import { Registry } from 'prom-client';
import { Deliverer } from '../src/deliveries/deliverer.ts';
import { DeliveryMetrics } from '../src/metrics.ts';

export const telegram = { botToken: '7000:telegram-token', secretToken: 'secret_token' };
const stepsMax = 200;
const BINDING_TRY_EVERY_MS = 15 * 60_000;

/** The delivery path over real files, a real Redis and providers on the loopback interface. The clock is the test's. */
export class TestDeliveries implements AsyncDisposable {
  /** Messages are accepted by the machine's clock. */
  nowMs = Date.now();
  /** States that `onReported` was called with, in order. */
  readonly reported: string[] = [];
  /** Bindings that were throttled, and for how long. */
  readonly held: { readonly channel: string; readonly ms: number }[] = [];
  readonly telegram = new FakeTelegram(telegram);
  readonly registry = new Registry();
  readonly clearing = new AsyncDisposableStack();
  urls: ProviderUrls = providerUrls;
  publicUrl: string | undefined;
  /** Right before a message would be claimed. */
  beforeSend: () => Promise<void> = async () => Promise.resolve();
  /** Wakes no worker, unless the test replaces it. */
  wakeOutbox: (lane: OutboxLane) => Promise<void> = async () => Promise.resolve();
  readonly #metrics = new DeliveryMetrics(this.registry);
  readonly #seen = new Map<string, Map<string, number>>();
  #bindingTriedMs = -Infinity;
  #server!: TestRedis;
  #scope!: TenantScope;
  #opened!: TestTenants;
  #calls = 0;

  static async open(): Promise<TestDeliveries> {
    const fixture = new TestDeliveries();
    await fixture.#start();
    return fixture;
  }

  get scope(): TenantScope {
    return this.#scope;
  }

  get tenants(): Tenants {
    return this.#opened.tenants;
  }

  get server(): TestRedis {
    return this.#server;
  }

  get receipts(): DeliveryReceipts {
    return new DeliveryReceipts({ redis: this.redis(), onReported: async (_scope, { state }) => this.#hear(state), now: () => this.nowMs });
  }

  /** As Prometheus reads them. */
  async figures(): Promise<string> {
    return this.registry.metrics();
  }

  redis(): ReturnType<typeof connectRedis> {
    const redis = connectRedis({ url: this.#server.url, role: 'worker', log });
    this.clearing.defer(() => {
      redis.disconnect();
    });
    return redis;
  }

  async connect<Channel extends MessagingChannel>(channel: Channel, settings: ChannelSettings[Channel]): Promise<void> {
    await this.#scope.channels.connect(channel, settings);
  }

  /** As when Redis is emptied: what was seen counts as seen for the first time. */
  forgetTimes(): void {
    this.#seen.clear();
  }

  /** A message for a contact on Telegram, unless the facts name another. */
  async say(text: string, facts: Partial<NewOutbound> = {}): Promise<string> {
    this.#calls += 1;
    const { channel = 'channel_c', to = '4242' } = facts;
    const { message } = await this.#scope.outbox.accept({
      kind: 'answer',
      channel,
      to,
      sessionId: deriveSessionId('cs', channel, to),
      text,
      agent: 'cs',
      turnId: `t_${String(this.#calls)}`,
      callId: 'answer',
      ...facts,
    });
    return message.id;
  }

  /** Another worker's deliverer, whose clock may be another. */
  deliverer({ aheadMs = 0 } = {}): Deliverer {
    const pace = {
      ...this.#times(),
      pace: async () => {
        await this.beforeSend();
        return 0;
      },
      hold: async ({ channel }: { readonly channel: string }, ms: number) => {
        this.held.push({ channel, ms });
        return Promise.resolve();
      },
    };
    return new Deliverer({
      providers: { providerUrls: this.urls, publicUrl: this.publicUrl },
      pace,
      receipts: this.receipts,
      onReported: async (_scope, { state }) => this.#hear(state),
      metrics: this.#metrics,
      log,
      now: () => this.nowMs + aheadMs,
      random: () => 0,
    });
  }

  /** Does all that can be done now for the message's conversation; the last step. */
  async deliver(id: string, { by = this.deliverer(), signal = new AbortController().signal } = {}): Promise<LaneStep> {
    const lane = id.slice(2, 14);
    for (let count = 0; count < stepsMax; count += 1) {
      const step = await by.deliverNext(this.#scope, lane, signal);
      if (step.kind !== 'again') return step;
    }
    throw new Error('there is always something left to do');
  }

  async delivery(id: string): Promise<Delivery> {
    const delivery = await this.#scope.outbox.delivery(id);
    if (delivery === undefined) throw new Error(`no message ${id}`);
    return delivery;
  }

  /** The deliveries of a queue: workers, wake-ups and a reconciler as in a service. */
  queue(): {
    readonly queue: DueQueue;
    readonly pace: DeliveryPace;
    readonly reconciler: DeliveryReconciler;
    readonly worker: (concurrency?: number) => DeliveryWorker;
  } {
    const redis = this.redis();
    const queue = openDeliveryQueue(redis, log);
    this.clearing.defer(async () => queue.stop());
    const { tenants } = this;
    const reconciler = new DeliveryReconciler({ redis, queue, tenants, log });
    const now = (): number => this.nowMs;
    const worker = (concurrency = 4): DeliveryWorker => {
      const deliverer = this.deliverer();
      const deliverNext: DeliverNext = async (scope, lane, signal) => deliverer.deliverNext(scope, lane, signal);
      const made = new DeliveryWorker({ queue, tenants, concurrency, deliverNext, log, now });
      made.start();
      this.clearing.defer(async () => made.stop(0));
      return made;
    };
    return { queue, pace: new DeliveryPace(redis), reconciler, worker };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clearing.disposeAsync();
  }

  async #start(): Promise<void> {
    this.#server = this.clearing.use(await TestRedis.start());
    this.clearing.use(await this.telegram.start());
    const wakeOutbox = async (lane: OutboxLane): Promise<void> => this.wakeOutbox(lane);
    this.#opened = this.clearing.use(await TestTenants.start({ wakeOutbox }));
    this.#scope = await this.#opened.scope();
    this.urls = { ...providerUrls, telegram: this.telegram.url };
    await this.connect('channel_c', telegram);
  }

  /** What Redis counts in service time, by the test's clock. */
  #times(): Pick<DeliveryPace, 'ages' | 'mayTryBinding' | 'noteBindingRefused'> {
    return {
      ages: async ({ lane }, names) => {
        const before = this.#seen.get(lane);
        const seen = new Map(names.map((name) => [name, before?.get(name) ?? this.nowMs]));
        this.#seen.set(lane, seen);
        return Promise.resolve(names.map((name) => this.nowMs - (seen.get(name) ?? 0)));
      },
      mayTryBinding: async () => {
        const isDue = this.nowMs - this.#bindingTriedMs >= BINDING_TRY_EVERY_MS;
        if (isDue) this.#bindingTriedMs = this.nowMs;
        return Promise.resolve(isDue);
      },
      noteBindingRefused: async () => {
        this.#bindingTriedMs = this.nowMs;
        return Promise.resolve();
      },
    };
  }

  async #hear(state: string): Promise<void> {
    this.reported.push(state);
    return Promise.resolve();
  }
}
