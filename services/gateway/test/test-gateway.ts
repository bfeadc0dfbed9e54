import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { providerUrls } from '@concierge/channel';
import { openIndex } from '@concierge/index';
import { connectRedis, createLog, ServiceStack } from '@concierge/runtime';
import { Tenants, toLogsFolder, type TenantScope } from '@concierge/tenant';
import { eventually, temporaryDirectory, TestRedis, untilAborted } from '@concierge/testing';
import { SharedLogs, WakeupQueue, Lanes, TurnReconciler, TurnWorker } from '@concierge/turn';
import type { Config } from '../src/config.ts';
import { wire } from '../src/wire.ts';
import { askPlainly, type FilePart } from './ask.ts';
import { sayItBack, scriptedTurns, type Script } from './scripted-turns.ts';

export interface Asked {
  readonly method?: string;
  readonly headers?: RequestInit['headers'];
  readonly body?: unknown;
  /** Instead of a body: a multipart one. */
  readonly files?: readonly FilePart[];
}

export interface TestTenant {
  readonly id: string;
  readonly scope: TenantScope;
  readonly admin: string;
  readonly cs: string;
  readonly read: string;
}

const log = createLog({ service: 'test', level: process.env['TEST_LOG'] ?? 'silent' }); // eslint-disable-line node/no-process-env -- to look into a failing test

/** A gateway as it ships, on a free port, over a real Redis and real files; its turns are run by a script. */
export class TestGateway implements AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  readonly redis: TestRedis;
  readonly tenants: Tenants;
  /** What signatures with a time in them are compared with. */
  readonly clock: { now: () => number };
  script: Script = sayItBack;
  readonly #service: ServiceStack;
  readonly #cleanUp: AsyncDisposableStack;

  private constructor(
    parts: Pick<TestGateway, 'url' | 'dataDir' | 'redis' | 'tenants' | 'clock'>,
    { service, cleanUp }: { readonly service: ServiceStack; readonly cleanUp: AsyncDisposableStack },
  ) {
    ({ url: this.url, dataDir: this.dataDir, redis: this.redis, tenants: this.tenants, clock: this.clock } = parts);
    this.#service = service;
    this.#cleanUp = cleanUp;
  }

  static async start(overrides: Partial<Config> = {}): Promise<TestGateway> {
    const cleanUp = new AsyncDisposableStack();
    const folder = cleanUp.use(await temporaryDirectory());
    const redis = cleanUp.use(await TestRedis.start());
    const keySecret = overrides.keySecret ?? randomBytes(32).toString('hex');
    const dataDir = overrides.dataDir ?? folder.path;
    const index = await openIndex({ databaseUrl: undefined, dataDir, log });
    cleanUp.defer(async () => index.close());
    const client = redis.client();
    // Named, so that it is not taken for a connection of the gateway.
    await client.client('SETNAME', 'test');
    cleanUp.defer(() => client.disconnect());
    const logged = new SharedLogs({ redis: client, lanes: new Lanes(client), folder: toLogsFolder(dataDir) });
    const tenants = new Tenants({ dataDir, index, logged, keySecret, secretsKey: keySecret, log });
    const config: Config = {
      dataDir,
      redisUrl: redis.url,
      databaseUrl: undefined,
      databasePool: 10,
      keySecret,
      secretsKey: keySecret,
      graceMs: 2000,
      logLevel: 'silent',
      prettyLog: false,
      failpoints: '',
      port: 0,
      providersFile: join(dataDir, 'providers.json'),
      host: '127.0.0.1',
      processes: 1,
      opsToken: undefined,
      outboundAllow: [],
      providerUrls,
      publicUrl: undefined,
      maxConnections: 1000,
      maxStreamsPerKey: 100,
      // Longer than the machine stands still: what is sent just then on one that is kept would be lost with it.
      keepAliveMs: 120_000,
      unreadAnswerMs: 20_000,
      leaveMs: 0,
      leaveAtMostMs: 0,
      ...overrides,
    };
    const clock = { now: Date.now };
    const service = new ServiceStack();
    const port = await wire(config, { stack: service, log }, () => clock.now());
    const url = `http://127.0.0.1:${String(port)}`;
    const gateway = new TestGateway({ url, dataDir, redis, tenants, clock }, { service, cleanUp });
    await gateway.#startWorker();
    cleanUp.defer(async () => gateway.stop(200));
    await eventually(async () => (await gateway.ask(undefined, '/readyz')).status === 200);
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
      await untilAborted(signal);
      signal.throwIfAborted();
    };
  }

  /** A request with a key and its whole answer; a body that is neither a string nor bytes goes as JSON. */
  async ask(key: string | undefined, path: string, init: Asked = {}): Promise<Response> {
    return askPlainly(this.url, path, { method: init.method, files: init.files, ...toSend(key, init) });
  }

  /** The same, answered as soon as the answer begins: for streams. */
  async open(key: string | undefined, path: string, init: Asked & { readonly signal?: AbortSignal } = {}): Promise<Response> {
    const { headers, body } = toSend(key, init);
    return fetch(`${this.url}${path}`, { ...init, headers, body: body ?? null });
  }

  /** As at SIGTERM. */
  async stop(graceMs: number): Promise<void> {
    await this.#service.stop(graceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanUp.disposeAsync();
  }

  async #startWorker(): Promise<void> {
    const redis = connectRedis({ url: this.redis.url, role: 'worker', log });
    const subscriber = connectRedis({ url: this.redis.url, role: 'subscriber', log });
    const lanes = new Lanes(redis);
    const wakeupQueue = new WakeupQueue(redis, log);
    const reconciler = new TurnReconciler({ redis, lanes, wakeupQueue, tenants: this.tenants, log });
    reconciler.start();
    const handlers = scriptedTurns(() => this.script);
    const worker = new TurnWorker({
      handlers,
      redis,
      subscriber,
      queue: { lanes, wakeupQueue },
      tenants: this.tenants,
      log,
      capacity: { concurrency: 16, tenantShare: 16 },
      about: { version: 'test' },
    });
    await worker.start();
    this.#cleanUp.defer(async () => {
      await worker.stop(0);
      await reconciler.stop();
      await wakeupQueue.stop();
      redis.disconnect();
      subscriber.disconnect();
    });
  }
}

/** Resolves once no turn of the tenant is under way: the file of one that has ended is removed after its answer. */
export async function atRest({ scope }: Pick<TestTenant, 'scope'>): Promise<void> {
  await eventually(async () => (await scope.busySessions()).size === 0);
}

function toSend(
  key: string | undefined,
  { headers: given, body }: Asked,
): { readonly headers: Headers; readonly body: string | Buffer<ArrayBuffer> | undefined } {
  const headers = new Headers(given);
  if (key !== undefined) headers.set('X-API-Key', key);
  if (isBytes(body)) return { headers, body };
  if (body !== undefined && !headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
  return { headers, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body) };
}

function isBytes(body: unknown): body is Buffer<ArrayBuffer> {
  return Buffer.isBuffer(body);
}
