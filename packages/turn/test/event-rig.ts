import type { EventView } from '@concierge/contract';
import { openIndex, type IndexStore } from '@concierge/index';
import { connectRedis, createLog } from '@concierge/runtime';
import { Tenants, type Happening, type TenantScope } from '@concierge/tenant';
import { eventually, temporaryDirectory, TestRedis, WebhookReceiver } from '@concierge/testing';
import { Outbound, OutboundError } from '@concierge/web';
import { EventBells, eventFetchPolicy, EventSender, EventSweeper, EventWorker, OutgoingEvents } from '../src/index.ts';

const log = createLog({ service: 'test', level: 'silent' });
export const secrets = { keySecret: 'k'.repeat(32), secretsKey: 's'.repeat(32) };
const usage = { inputTokens: 12, outputTokens: 3 };

/** Events over a real Redis, real files and real HTTP, with a clock that a test can put forward. */
export class EventRig implements AsyncDisposable {
  readonly redis: TestRedis;
  readonly tenants: Tenants;
  readonly bells: EventBells;
  readonly outgoing: OutgoingEvents;
  readonly sweeper: EventSweeper;
  readonly dataDir: string;
  readonly tried: string[] = [];
  aheadMs = 0;
  readonly #stack: AsyncDisposableStack;

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
    this.bells = new EventBells(client, log);
    stack.defer(async () => {
      await this.bells.stop();
      client.disconnect();
    });
    this.outgoing = new OutgoingEvents({ bells: this.bells, log });
    this.sweeper = new EventSweeper({ redis: client, bells: this.bells, tenants: this.tenants, log, now: () => this.now() });
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

  /** What one worker has; `allow`: places that its operator has opened. */
  worker({ allow, concurrency }: { readonly allow: readonly string[]; readonly concurrency?: number }): EventWorker {
    const redis = connectRedis({ url: this.redis.url, role: 'worker', log });
    const now = (): number => this.now();
    const sender = new EventSender({
      fetch: new Outbound({ allow }).fetcher(eventFetchPolicy),
      explain: (error) => (error instanceof OutboundError ? error.message : undefined),
    });
    const onTried = (type: string, outcome: string): void => void this.tried.push(`${type} ${outcome}`);
    const parts = { redis, bells: this.bells, tenants: this.tenants, sender, log };
    const worker = new EventWorker({ ...parts, onTried, now, random: () => 0.5, ...(concurrency !== undefined && { concurrency }) });
    worker.start();
    this.#stack.defer(async () => {
      await worker.stop(0);
      redis.disconnect();
    });
    return worker;
  }

  /** A turn that has ended, as its worker tells of it. */
  async turnEnds(key: string, reply = 'Hello.'): Promise<void> {
    await this.outgoing.emit(await this.scope(), turnEnded(key, reply));
  }

  /** The clock goes forward, and whoever looks after what waits looks. */
  async later(ms: number): Promise<void> {
    this.aheadMs += ms;
    await this.sweeper.layTenant('acme');
  }

  async events(): Promise<EventView[]> {
    return (await (await this.scope()).events.list({ limit: 100 })).items;
  }

  /** The only event there is, as soon as it is so. */
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

export function turnEnded(key: string, reply = 'Hello.'): Happening<'turn.completed'> {
  const at = '2026-11-21T20:00:00.000Z';
  const conversation = { contact_id: '0'.repeat(32), agent: 'cs', channel: 'web', origin: 'api' } as const;
  const data = { turnId: key, ...conversation, acceptedAt: at, usage, finishReason: 'stop' } as const;
  return { type: 'turn.completed', key, at, data, text: async () => Promise.resolve(reply) };
}
