import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { keyScopes, type KeyScope, type ModelFacts } from '@concierge/contract';
import type { IndexStore } from '@concierge/index';
import { createLog } from '@concierge/runtime/process';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { describeHits, LogSearch } from './log-search.ts';
import { startScriptedModel, type ScriptedModel, type ScriptedModelOptions } from './model/scripted-model.ts';
import { TestRedis } from './redis/redis-server.ts';
import type { ReplicatedRedis } from './redis/replicated-redis.ts';
import { ServiceProcess, sourceFlags, systemPath } from './service-process.ts';

export interface SystemOptions {
  /** Base URL of a model server, with `/v1`. */
  readonly modelUrl: string;
  readonly gateways?: number;
  readonly workers?: number;
  readonly crons?: number;
  readonly uis?: number;
  /** `postgres://…`; SQLite when left out. */
  readonly databaseUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What one process gets besides, by its name: `gateway-0`, `worker-1`, `redis`. */
  readonly envFor?: (name: string) => Readonly<Record<string, string>>;
  /** In place of a single server of its own. `slots`: over which tenants are spread. */
  readonly replicatedRedis?: (Pick<ReplicatedRedis, 'url' | 'client'> & { readonly slots?: number }) | undefined;
  /** Redis syncs every second, as in production: for what measures it. */
  readonly redisSyncs?: boolean;
  /** Another checkout whose services are run; this one when left out. */
  readonly tree?: string | undefined;
  /** A folder that exists and stays; one of its own that goes with the system when left out. */
  readonly dataDir?: string;
  /** Where services print to; `DATA_DIR/logs` when left out. */
  readonly logsFolder?: string;
  readonly contextWindow?: number;
  /** How long a model may be silent before it, or another, is asked again; as in production when left out. */
  readonly modelTimeouts?: ModelFacts['timeouts'];
  /** Of every model of the file, in US dollars per million tokens; unknown when left out. */
  readonly price?: { readonly input: number; readonly output: number };
  readonly fallbackModels?: readonly string[];
  /** Memory is searched by meaning, too, with vectors of the same server. */
  readonly embeddings?: boolean;
}

export interface TenantKeys {
  readonly tenantId: string;
  readonly admin: string;
  readonly cs: string;
  readonly read: string;
}

/** All processes start at once, on a machine that may have other things to do. */
const READY_TIMEOUT_MS = 180_000;

const MadeTenant = z.object({ keys: z.object({ admin: z.string(), cs: z.string() }) });
const MadeKey = z.object({ key: z.string() });

/**
 * The whole system as users have it: real processes, a real Redis, a real database, over a data directory of its own.
 */
export class System implements AsyncDisposable {
  readonly dataDir: string;
  readonly logsFolder: string;
  /** What the services' logs are searched for when the system is disposed: a hit fails the test. */
  readonly logSearch = new LogSearch();
  readonly gateways: ServiceProcess[] = [];
  readonly workers: ServiceProcess[] = [];
  readonly crons: ServiceProcess[] = [];
  readonly uis: ServiceProcess[] = [];
  readonly gatewayUrls: string[] = [];
  readonly uiUrls: string[] = [];
  readonly #options: SystemOptions;
  readonly #redis: TestRedis | undefined;
  readonly #keySecret = randomBytes(32).toString('hex');
  readonly #modelKey = randomBytes(16).toString('hex');
  #tenants: Tenants | undefined;
  #index: IndexStore | undefined;
  #redisClient: Redis | undefined;

  private constructor(options: SystemOptions, dataDir: string, redis: TestRedis | undefined) {
    this.#options = options;
    this.dataDir = dataDir;
    this.logsFolder = options.logsFolder ?? join(dataDir, 'logs');
    this.#redis = redis;
  }

  static async start(options: SystemOptions): Promise<System> {
    const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'concierge-system-')));
    const startRedis = async (): Promise<TestRedis> =>
      await TestRedis.start({ env: options.envFor?.('redis') ?? {}, syncs: options.redisSyncs === true });
    const system = new System(options, dataDir, options.replicatedRedis === undefined ? await startRedis() : undefined);
    await mkdir(system.logsFolder, { recursive: true });
    await system.#writeProviders();
    await system.#addServices(options);
    for (const service of system.services) service.start();
    await system.ready();
    return system;
  }

  get services(): ServiceProcess[] {
    return [...this.gateways, ...this.workers, ...this.crons, ...this.uis];
  }

  /**
   * The single server.
   * @throws Error where `replicatedRedis` stands in its place
   */
  get redis(): TestRedis {
    if (this.#redis === undefined) throw new Error('this system has no Redis of its own: it runs over replicatedRedis');
    return this.#redis;
  }

  /** The first gateway. */
  get url(): string {
    return this.gatewayUrls[0] ?? '';
  }

  /** Resolves when every gateway reports ready and every console answers: a browser does not ask it again. */
  async ready(): Promise<void> {
    const asked = [...this.gatewayUrls.map((url) => `${url}/readyz`), ...this.uiUrls.map((url) => `${url}/livez`)];
    for (const url of asked) await eventually(async () => (await fetch(url)).status === 200, { timeoutMs: READY_TIMEOUT_MS, everyMs: 50 });
  }

  /** The same access to tenants as the services have, in this process. */
  async tenants(): Promise<Tenants> {
    if (this.#tenants === undefined) {
      // Loaded where it is used: most files that import this package reach no tenant in their own process.
      const [{ openIndex }, tenant, turn] = await Promise.all([
        import('@concierge/index'),
        import('@concierge/tenant'),
        import('@concierge/turn'),
      ]);
      const log = createLog({ service: 'test', level: 'silent' });
      const index = await openIndex({ databaseUrl: this.#options.databaseUrl, dataDir: this.dataDir, log });
      this.#index = index;
      const redis = this.#connectRedis();
      this.#redisClient = redis;
      const lanes = new turn.Lanes(redis);
      const logged = new turn.SharedLogs({ redis, lanes, folder: tenant.toLogsFolder(this.dataDir) });
      this.#tenants = new tenant.Tenants({
        dataDir: this.dataDir,
        logged,
        index,
        keySecret: this.#keySecret,
        secretsKey: this.#keySecret,
        log,
      });
    }
    return this.#tenants;
  }

  async scope(tenantId: string): Promise<TenantScope> {
    return await (await this.tenants()).open(tenantId);
  }

  async createTenant(tenantId: string, plan: 'preview' | 'standard' = 'standard'): Promise<TenantKeys> {
    if (this.#options.tree !== undefined) return await this.#createTenantThere(tenantId, plan);
    const scope = await (await this.tenants()).create(tenantId, { plan });
    const newKey = async (needed: KeyScope): Promise<string> => (await scope.keys.create({ scopes: [needed] }, keyScopes)).key;
    return { tenantId, admin: await newKey('admin'), cs: await newKey('cs'), read: await newKey('read') };
  }

  /** Loses the tenant's part of the index, as a deleted database would. */
  async dropIndex(tenantId: string): Promise<void> {
    await this.tenants();
    await this.#index?.drop(tenantId);
  }

  /** Loses everything that Redis has, on each of its masters. */
  async flushRedis(): Promise<void> {
    const { listSlots } = await import('@concierge/runtime');
    const slots = listSlots(this.#connectRedis());
    try {
      await Promise.all(slots.map(async (slot) => slot.flushall()));
    } finally {
      for (const slot of slots) slot.disconnect();
    }
  }

  /** What a service printed. */
  async readServiceLog(name: string): Promise<string> {
    return await readFile(this.#toLogFile(name), 'utf8');
  }

  /** @throws Error when a service has logged what this system handed out, after everything is closed */
  async [Symbol.asyncDispose](): Promise<void> {
    await using stack = new AsyncDisposableStack();
    if (this.#options.dataDir === undefined) stack.defer(async () => rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 }));
    stack.use(this.#redis);
    stack.defer(async () => {
      if (this.#redisClient === undefined) return;
      const { listSlots } = await import('@concierge/runtime');
      for (const slot of listSlots(this.#redisClient)) slot.disconnect();
    });
    stack.defer(async () => this.#index?.close());
    await Promise.all(this.services.map(async (service) => await service.kill()));
    const hits = await this.logSearch.findHits(this.services.map(({ name }) => this.#toLogFile(name)));
    if (hits.length > 0) throw new Error(describeHits(hits));
  }

  #connectRedis(): Redis {
    return (this.#options.replicatedRedis ?? this.redis).client();
  }

  #toLogFile(name: string): string {
    return join(this.logsFolder, `${name}.log`);
  }

  async #addServices({ gateways = 1, workers = 1, crons = 0, uis = 0 }: SystemOptions): Promise<void> {
    for (let index = 0; index < gateways; index += 1) await this.#addGateway(index);
    for (let index = 0; index < workers; index += 1) this.workers.push(this.#service('worker', index, {}));
    for (let index = 0; index < crons; index += 1) this.crons.push(this.#service('cron', index, {}));
    for (let index = 0; index < uis; index += 1) await this.#addUi(index);
  }

  async #addGateway(index: number): Promise<void> {
    const port = await freePort();
    this.gatewayUrls.push(`http://127.0.0.1:${String(port)}`);
    this.gateways.push(this.#service('gateway', index, { GATEWAY_PORT: String(port) }));
  }

  async #addUi(index: number): Promise<void> {
    const port = await freePort();
    this.uiUrls.push(`http://127.0.0.1:${String(port)}`);
    this.uis.push(this.#service('ui', index, { UI_PORT: String(port), GATEWAY_URL: this.url }));
  }

  #service(kind: 'gateway' | 'worker' | 'cron' | 'ui', index: number, env: Record<string, string>): ServiceProcess {
    const name = `${kind}-${String(index)}`;
    const { tree, envFor } = this.#options;
    // The model server reads from it which process asks.
    const modelKey = { MODEL_API_KEY: `${name}.${this.#modelKey}` };
    const all = { ...this.#commonEnvironment(), ...modelKey, ...env, ...this.#options.env, ...envFor?.(name) };
    this.logSearch.plantSecrets(all);
    return new ServiceProcess({ name, tree, entry: `services/${kind}/src/main.ts`, env: all, logFile: this.#toLogFile(name) });
  }

  #commonEnvironment(): Record<string, string> {
    const { databaseUrl } = this.#options;
    return {
      DATA_DIR: this.dataDir,
      REDIS_URL: (this.#options.replicatedRedis ?? this.redis).url,
      REDIS_SLOTS: String(this.#options.replicatedRedis?.slots ?? 1),
      PROVIDERS_FILE: join(this.dataDir, 'providers.json'),
      KEY_SECRET: this.#keySecret,
      SECRETS_KEY: this.#keySecret,
      LOG_LEVEL: 'info',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    };
  }

  /** Uses the other checkout's own command line, which makes files and index in its own way. */
  async #createTenantThere(tenantId: string, plan: string): Promise<TenantKeys> {
    const concierge = async (...args: string[]): Promise<unknown> => {
      const env = { PATH: systemPath, ...this.#commonEnvironment() };
      const script = ['packages/cli/src/main.ts', ...args, '--json'];
      const { stdout } = await promisify(execFile)(process.execPath, [...sourceFlags, ...script], { cwd: this.#options.tree, env });
      return JSON.parse(stdout);
    };
    const { keys } = MadeTenant.parse(await concierge('tenant', 'create', tenantId, '--plan', plan));
    const { key: read } = MadeKey.parse(await concierge('key', 'create', tenantId, '--scope', 'read'));
    return { tenantId, ...keys, read };
  }

  async #writeProviders(): Promise<void> {
    const { modelUrl, contextWindow = 128_000, modelTimeouts: timeouts, fallbackModels = [], price } = this.#options;
    const limits = { contextWindow, maxOutputTokens: 4096, ...(timeouts !== undefined && { timeouts }) };
    const facts = { ...limits, ...(price !== undefined && { price }) };
    const models = Object.fromEntries(['scripted', ...fallbackModels].map((name) => [name, facts]));
    const providers = { test: { baseUrl: modelUrl, apiKeyEnv: 'MODEL_API_KEY', models } };
    const embeddings = this.#options.embeddings === true ? { embeddings: { model: 'test/embedding', apiKey: 'embeddings-key' } } : {};
    const file = { default: 'test/scripted', fallbacks: fallbackModels.map((name) => `test/${name}`), providers, ...embeddings };
    await writeFile(join(this.dataDir, 'providers.json'), JSON.stringify(file));
  }
}

export interface ScriptedSystem {
  readonly system: System;
  readonly model: ScriptedModel;
}

/**
 * A scripted model says nothing for as long as its script wants, or as this process stands still. A worker that lost
 * patience meanwhile would ask anew and get another script, or fail the turn.
 */
const SILENT_MS = 10 * 60_000;
const patient = { headersMs: SILENT_MS, firstTokenMs: SILENT_MS, silenceMs: SILENT_MS };

/** The whole system with a model whose replies a test scripts; the stack closes both. */
export async function startScriptedSystem(
  stack: AsyncDisposableStack,
  { script = {}, ...options }: Partial<SystemOptions> & { readonly script?: ScriptedModelOptions } = {},
): Promise<ScriptedSystem> {
  const model = stack.use(await startScriptedModel(script));
  // Another checkout may know of no such setting.
  const given = { modelUrl: model.url, ...(options.tree === undefined && { modelTimeouts: patient }), ...options };
  return { system: stack.use(await System.start(given)), model };
}

/** How many turns of all tenants are accepted and unanswered, by what is on disk: inboxes and write-ahead logs. */
export async function countUnanswered(tenantsFolder: string): Promise<number> {
  const names = await readdir(tenantsFolder);
  const inboxes = await Promise.all(names.map(async (name) => readdir(join(tenantsFolder, name, 'inbox')).catch((): string[] => [])));
  const filed = inboxes.flat().filter((name) => /^t_[0-9a-f]+\.json$/u.test(name));
  const { LogsOnDisk } = await import('@concierge/turn');
  return filed.length + (await new LogsOnDisk(join(tenantsFolder, '.wal')).turns()).length;
}
