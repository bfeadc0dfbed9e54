import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keyScopes, type KeyScope } from '@concierge/contract';
import { createLog } from '@concierge/runtime';
import { openIndex, Tenants, type IndexStore, type TenantScope } from '@concierge/tenant';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { TestRedis } from './redis-server.ts';
import { ServiceProcess } from './service-process.ts';

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
  readonly contextWindow?: number;
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

/** The whole system as users have it: real processes, a real Redis, a real database, over a data directory of its own. */
export class System implements AsyncDisposable {
  readonly dataDir: string;
  readonly redis: TestRedis;
  readonly gateways: ServiceProcess[] = [];
  readonly workers: ServiceProcess[] = [];
  readonly crons: ServiceProcess[] = [];
  readonly uis: ServiceProcess[] = [];
  readonly gatewayUrls: string[] = [];
  readonly uiUrls: string[] = [];
  readonly #options: SystemOptions;
  readonly #keySecret = randomBytes(32).toString('hex');
  #tenants: Tenants | undefined;
  #index: IndexStore | undefined;

  private constructor(options: SystemOptions, dataDir: string, redis: TestRedis) {
    this.#options = options;
    this.dataDir = dataDir;
    this.redis = redis;
  }

  static async start(options: SystemOptions): Promise<System> {
    const dataDir = await mkdtemp(join(tmpdir(), 'concierge-system-'));
    const system = new System(options, dataDir, await TestRedis.start());
    await mkdir(join(dataDir, 'logs'));
    await system.#writeProviders();
    for (let index = 0; index < (options.gateways ?? 1); index += 1) await system.#addGateway(index);
    for (let index = 0; index < (options.workers ?? 1); index += 1) system.workers.push(system.#service('worker', index, {}));
    for (let index = 0; index < (options.crons ?? 0); index += 1) system.crons.push(system.#service('cron', index, {}));
    for (let index = 0; index < (options.uis ?? 0); index += 1) await system.#addUi(index);
    for (const service of system.services) service.start();
    await system.ready();
    return system;
  }

  get services(): ServiceProcess[] {
    return [...this.gateways, ...this.workers, ...this.crons, ...this.uis];
  }

  /** The first gateway. */
  get url(): string {
    return this.gatewayUrls[0] ?? '';
  }

  /** Every gateway says it is ready. */
  async ready(): Promise<void> {
    for (const url of this.gatewayUrls) {
      await eventually(async () => (await fetch(`${url}/readyz`)).status === 200, { timeoutMs: 30_000, everyMs: 50 });
    }
  }

  /** The same doors to tenants as the services have, in this process. */
  async tenants(): Promise<Tenants> {
    if (this.#tenants === undefined) {
      const log = createLog({ service: 'test', level: 'silent' });
      const index = await openIndex({ databaseUrl: this.#options.databaseUrl, dataDir: this.dataDir, log });
      this.#index = index;
      this.#tenants = new Tenants({ dataDir: this.dataDir, index, keySecret: this.#keySecret, secretsKey: this.#keySecret, log });
    }
    return this.#tenants;
  }

  async scope(tenantId: string): Promise<TenantScope> {
    return await (await this.tenants()).open(tenantId);
  }

  async createTenant(tenantId: string, plan: 'preview' | 'standard' = 'standard'): Promise<TenantKeys> {
    const scope = await (await this.tenants()).create(tenantId, { plan });
    const newKey = async (needed: KeyScope): Promise<string> => (await scope.keys.create({ scopes: [needed] }, keyScopes)).key;
    return { tenantId, admin: await newKey('admin'), cs: await newKey('cs'), read: await newKey('read') };
  }

  /** Loses the tenant's part of the index, as a deleted database would. */
  async dropIndex(tenantId: string): Promise<void> {
    await this.tenants();
    await this.#index?.drop(tenantId);
  }

  /** What a service printed. */
  async logOf(name: string): Promise<string> {
    return await readFile(join(this.dataDir, 'logs', `${name}.log`), 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.services.map(async (service) => await service.kill()));
    await this.#index?.close();
    await this.redis[Symbol.asyncDispose]();
    await rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
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
    const { databaseUrl } = this.#options;
    const common = {
      DATA_DIR: this.dataDir,
      REDIS_URL: this.redis.url,
      PROVIDERS_FILE: join(this.dataDir, 'providers.json'),
      KEY_SECRET: this.#keySecret,
      SECRETS_KEY: this.#keySecret,
      LOG_LEVEL: 'info',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    };
    return new ServiceProcess({
      name,
      entry: `services/${kind}/src/main.ts`,
      env: { ...common, ...env, ...this.#options.env },
      logFile: join(this.dataDir, 'logs', `${name}.log`),
    });
  }

  async #writeProviders(): Promise<void> {
    const { modelUrl, contextWindow = 128_000, fallbackModels = [] } = this.#options;
    const facts = { contextWindow, maxOutputTokens: 4096 };
    const models = Object.fromEntries(['scripted', ...fallbackModels].map((name) => [name, facts]));
    const providers = { test: { baseUrl: modelUrl, apiKey: 'test-key', models } };
    const embeddings = this.#options.embeddings === true ? { embeddings: { model: 'test/embedding', apiKey: 'embeddings-key' } } : {};
    const file = { default: 'test/scripted', fallbacks: fallbackModels.map((name) => `test/${name}`), providers, ...embeddings };
    await writeFile(join(this.dataDir, 'providers.json'), JSON.stringify(file));
  }
}
