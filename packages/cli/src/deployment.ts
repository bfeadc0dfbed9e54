import type { ChatAppConnections } from '@concierge/channel';
import { AppError } from '@concierge/contract';
import type { IndexStore } from '@concierge/index';
import { connectRedis, createLog, redisReady, type Log } from '@concierge/runtime';
import type { Tenants, TenantScope } from '@concierge/tenant';
import type { Doorbells, EventBells, HandoffCallsOptions, HandoffDesk, Turns } from '@concierge/turn';
import type { Config } from './config.ts';

const REDIS_TIMEOUT_MS = 3000;

type Redis = ReturnType<typeof connectRedis>;

/**
 * The files, index and Redis of one deployment; each is loaded and opened when a command first needs it. The one who made the deployment closes it.
 */
export class Deployment {
  readonly config: Config;
  readonly log: Log;
  #index: Promise<IndexStore> | undefined;
  #tenants: Tenants | undefined;
  #redis: Redis | undefined;
  /** Waited for once: a second command part is not to wait as long again for what is not there. */
  #redisReady: Promise<void> | undefined;
  #doorbells: Doorbells | undefined;
  #eventBells: EventBells | undefined;

  constructor(config: Config) {
    this.config = config;
    this.log = createLog({ service: 'cli', level: config.logLevel, toStderr: true });
  }

  async index(): Promise<IndexStore> {
    const { databaseUrl, dataDir } = this.config;
    const { openIndex } = await import('@concierge/index');
    this.#index ??= openIndex({ databaseUrl, dataDir, log: this.log });
    return await this.#index;
  }

  /** @throws AppError invalid_request, when nothing was ever started here */
  async tenants(): Promise<Tenants> {
    const { dataDir, keySecret, secretsKey } = this.config;
    if (keySecret === undefined) {
      throw new AppError(
        'invalid_request',
        `There is no KEY_SECRET in the environment nor in ${dataDir}/secrets.json: run npm start once, or set DATA_DIR.`,
      );
    }
    const [index, tenant] = [await this.index(), await import('@concierge/tenant')];
    this.#tenants ??= new tenant.Tenants({ dataDir, index, keySecret, secretsKey, log: this.log });
    return this.#tenants;
  }

  /** @throws AppError not_found */
  async scope(tenantId: string): Promise<TenantScope> {
    return await (await this.tenants()).open(tenantId).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'not_found')
        throw new AppError('not_found', `There is no tenant ${tenantId}.`, { cause: error });
      throw error;
    });
  }

  async connections(): Promise<ChatAppConnections> {
    const { ChatAppConnections: Connections } = await import('@concierge/channel');
    return new Connections({ urls: this.config.providerUrls, publicUrl: this.config.publicUrl });
  }

  /** @throws AppError overloaded, when it does not answer */
  async redis(): Promise<Redis> {
    const { redisUrl } = this.config;
    if (redisUrl === undefined) throw new AppError('overloaded', 'Redis is not known: run npm start, or set REDIS_URL.');
    // Its warnings would stand beside the one line that says the same.
    const redis = (this.#redis ??= connectRedis({ url: redisUrl, role: 'producer', log: this.log.child({}, { level: 'silent' }) }));
    this.#redisReady ??= redisReady(redis, REDIS_TIMEOUT_MS);
    await this.#redisReady.catch((error: unknown) => {
      throw new AppError('overloaded', 'Redis does not answer: is Concierge running?', { cause: error });
    });
    return redis;
  }

  async turns(): Promise<Turns> {
    const [redis, turn] = [await this.redis(), await import('@concierge/turn')];
    this.#doorbells ??= new turn.Doorbells(redis, this.log);
    return new turn.Turns({ redis, lanes: new turn.Lanes(redis), doorbells: this.#doorbells, log: this.log });
  }

  async handoffDesk(): Promise<HandoffDesk> {
    const [turns, turn] = [await this.turns(), await import('@concierge/turn')];
    this.#eventBells ??= new turn.EventBells(await this.redis(), this.log);
    const events = new turn.OutgoingEvents({ bells: this.#eventBells, log: this.log });
    const onRequested: HandoffCallsOptions['onRequested'] = async (scope, handoff) => events.emit(scope, turn.handoffRequested(handoff));
    return new turn.HandoffDesk({ turns, calls: new turn.HandoffCalls({ turns, onRequested, log: this.log }) });
  }

  async close(): Promise<void> {
    await this.#doorbells?.stop();
    await this.#eventBells?.stop();
    this.#redis?.disconnect();
    const index = await this.#index?.catch(() => undefined);
    await index?.close();
  }
}
