import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { providerUrls } from '@concierge/channel';
import { openIndex } from '@concierge/index';
import { connectRedis, createLog, type Running } from '@concierge/runtime';
import { Tenants, type TenantScope } from '@concierge/tenant';
import { eventually, temporaryDirectory, TestRedis } from '@concierge/testing';
import { Doorbells, Lanes, Sweeper, TurnWorker } from '@concierge/turn';
import type { Config } from '../src/config.ts';
import { wire } from '../src/wire.ts';
import { askPlainly } from './ask.ts';
import { sayItBack, scriptedTurns, type Script } from './scripted-turns.ts';

export interface Asked {
  readonly method?: string;
  readonly headers?: RequestInit['headers'];
  readonly body?: unknown;
}

export interface TestTenant {
  readonly id: string;
  readonly scope: TenantScope;
  readonly admin: string;
  readonly cs: string;
  readonly read: string;
}

const log = createLog({ service: 'test', level: process.env['TEST_LOG'] ?? 'silent' }); // eslint-disable-line node/no-process-env -- to look into a failing test

/** A gateway as it ships, on a port of its own, over a real Redis and real files; its turns are run by a script. */
export class TestGateway implements AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  readonly redis: TestRedis;
  readonly tenants: Tenants;
  readonly running: Running;
  /** What signatures with a time in them are compared with. */
  readonly clock: { now: () => number };
  script: Script = sayItBack;
  readonly #cleanUp: AsyncDisposableStack;

  private constructor(
    parts: Pick<TestGateway, 'url' | 'dataDir' | 'redis' | 'tenants' | 'running' | 'clock'>,
    cleanUp: AsyncDisposableStack,
  ) {
    ({ url: this.url, dataDir: this.dataDir, redis: this.redis, tenants: this.tenants, running: this.running, clock: this.clock } = parts);
    this.#cleanUp = cleanUp;
  }

  static async start(overrides: Partial<Config> = {}): Promise<TestGateway> {
    const cleanUp = new AsyncDisposableStack();
    const folder = cleanUp.use(await temporaryDirectory());
    const redis = cleanUp.use(await TestRedis.start());
    const keySecret = randomBytes(32).toString('hex');
    const dataDir = overrides.dataDir ?? folder.path;
    const index = await openIndex({ databaseUrl: undefined, dataDir, log });
    cleanUp.defer(async () => index.close());
    const tenants = new Tenants({ dataDir, index, keySecret, secretsKey: keySecret, log });
    const config: Config = {
      dataDir,
      redisUrl: redis.url,
      databaseUrl: undefined,
      keySecret,
      secretsKey: keySecret,
      graceMs: 2000,
      logLevel: 'silent',
      prettyLog: false,
      failpoints: '',
      port: 0,
      providersFile: join(dataDir, 'providers.json'),
      host: '127.0.0.1',
      opsToken: undefined,
      outboundAllow: [],
      providerUrls,
      publicUrl: undefined,
      maxConnections: 1000,
      maxStreamsPerKey: 100,
      keepAliveMs: 5000,
      unreadAnswerMs: 20_000,
      leaveMs: 0,
      ...overrides,
    };
    const clock = { now: Date.now };
    const running = await wire(config, log, () => clock.now());
    const gateway = new TestGateway({ url: `http://127.0.0.1:${String(running.port)}`, dataDir, redis, tenants, running, clock }, cleanUp);
    await gateway.#startWorker();
    cleanUp.defer(async () => {
      for (const part of running.stopInOrder) await part.stop(200);
    });
    await eventually(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
    return gateway;
  }

  async tenant(plan: 'preview' | 'standard' = 'standard'): Promise<TestTenant> {
    const id = `t${randomBytes(6).toString('hex')}`;
    const scope = await this.tenants.create(id, { plan });
    const key = async (keyScope: 'admin' | 'cs' | 'read'): Promise<string> =>
      (await scope.keys.create({ scopes: [keyScope] }, ['admin'])).key;
    return { id, scope, admin: await key('admin'), cs: await key('cs'), read: await key('read') };
  }

  /** From now on turns begin and do not end, so that what was accepted stays in the inbox. */
  holdTurns(): void {
    this.script = async ({ signal }) => {
      await once(signal, 'abort');
      signal.throwIfAborted();
    };
  }

  /** A request with a key and its whole answer; a body that is no string goes as JSON. */
  async ask(key: string | undefined, path: string, init: Asked = {}): Promise<Response> {
    return askPlainly(this.url, path, { method: init.method, ...toSend(key, init) });
  }

  /** The same, answered as soon as the answer begins: for streams. */
  async open(key: string | undefined, path: string, init: Asked & { readonly signal?: AbortSignal } = {}): Promise<Response> {
    const { headers, body } = toSend(key, init);
    return fetch(`${this.url}${path}`, { ...init, headers, body: body ?? null });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanUp.disposeAsync();
  }

  async #startWorker(): Promise<void> {
    const redis = connectRedis({ url: this.redis.url, role: 'worker', log });
    const subscriber = connectRedis({ url: this.redis.url, role: 'subscriber', log });
    const lanes = new Lanes(redis);
    const doorbells = new Doorbells(redis, log);
    const sweeper = new Sweeper({ redis, lanes, doorbells, tenants: this.tenants, log });
    sweeper.start();
    const handlers = scriptedTurns(() => this.script);
    const worker = new TurnWorker({
      ...handlers,
      redis,
      subscriber,
      lanes,
      doorbells,
      tenants: this.tenants,
      log,
      concurrency: 16,
      tenantShare: 16,
      version: 'test',
    });
    await worker.start();
    this.#cleanUp.defer(async () => {
      await worker.stop(0);
      await sweeper.stop();
      await doorbells.stop();
      redis.disconnect();
      subscriber.disconnect();
    });
  }
}

function toSend(
  key: string | undefined,
  { headers: given, body }: Asked,
): { readonly headers: Headers; readonly body: string | undefined } {
  const headers = new Headers(given);
  if (key !== undefined) headers.set('X-API-Key', key);
  if (body !== undefined && !headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
  return { headers, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body) };
}
