import type { ChannelConnections } from '@concierge/channel';
import { AppError } from '@concierge/contract';
import type { TurnPath } from '@concierge/core';
import type { IndexStore } from '@concierge/index';
import { ConfigError, createLog, openRedis, type connectRedis, type Log } from '@concierge/runtime';
import type { LoggedTurns, Tenants, TenantScope } from '@concierge/tenant';
import type { HandoffRequests, LogsOnDisk, Turns } from '@concierge/turn';
import type { Config } from './config.ts';

const REDIS_TIMEOUT_MS = 3000;

type Redis = ReturnType<typeof connectRedis>;

/**
 * The files, index and Redis of one deployment; each is loaded and opened when a command first needs it. Who made the
 * deployment closes it.
 */
export class Deployment {
  readonly config: Config;
  readonly log: Log;
  readonly #stack = new AsyncDisposableStack();
  #index: Promise<IndexStore> | undefined;
  #tenants: Tenants | undefined;
  /** Waited for once: a second command part is not to wait as long again for what is not there. */
  #redis: Promise<Redis> | undefined;
  #turnPath: TurnPath | undefined;

  constructor(config: Config) {
    this.config = config;
    this.log = createLog({ service: 'cli', level: config.logLevel, toStderr: true });
  }

  async index(): Promise<IndexStore> {
    const { databaseUrl, databasePool, dataDir } = this.config;
    const { openIndex } = await import('@concierge/index');
    this.#index ??= openIndex({ databaseUrl, databasePool, dataDir, log: this.log }).then((index) =>
      this.#stack.adopt(index, async (opened) => opened.close()),
    );
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
    // Redis knows better which of them have ended; a command that does not need it does not wait for it.
    const lately = async (): Promise<LoggedTurns> => this.#turnPath?.logged ?? this.#logsOnDisk();
    const logged: LoggedTurns = {
      read: async (...asked) => (await lately()).read(...asked),
      turnIds: async (...asked) => (await lately()).turnIds(...asked),
    };
    this.#tenants ??= new tenant.Tenants({ dataDir, index, keySecret, secretsKey, logged, log: this.log });
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

  async connections(): Promise<ChannelConnections> {
    const { ChannelConnections: Connections } = await import('@concierge/channel');
    return new Connections({ urls: this.config.providerUrls, publicUrl: this.config.publicUrl });
  }

  /** @throws AppError overloaded, when it does not answer */
  async redis(): Promise<Redis> {
    const { redisUrl } = this.config;
    if (redisUrl === undefined) throw new AppError('overloaded', 'Redis is not known: run npm start, or set REDIS_URL.');
    // Its warnings would repeat the one line of the error.
    const log = this.log.child({}, { level: 'silent' });
    this.#redis ??= openRedis({ url: redisUrl, role: 'producer', log, timeoutMs: REDIS_TIMEOUT_MS }, this.#stack);
    return this.#redis.catch((error: unknown) => {
      const why = error instanceof ConfigError ? ` ${error.problems.join(' ')}` : '';
      throw new AppError('overloaded', `Redis does not answer: is Concierge running?${why}`, { cause: error });
    });
  }

  async turns(): Promise<Turns> {
    return (await this.#openTurnPath()).turns;
  }

  async handoffRequests(): Promise<HandoffRequests> {
    return (await this.#openTurnPath()).handoffs.desk;
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }

  /** For what copies a tenant's folder: what is accepted and only in a write-ahead log gets its file. */
  async fileAccepted(scope: TenantScope): Promise<void> {
    const [disk, redis, { fileUnanswered }] = [
      await this.#logsOnDisk(),
      await this.redis().catch(() => undefined),
      await import('@concierge/turn'),
    ];
    await fileUnanswered(redis, scope, await disk.findTurns(scope.tenantId));
  }

  async #logsOnDisk(): Promise<LogsOnDisk> {
    const [turn, { toLogsFolder }] = [await import('@concierge/turn'), await import('@concierge/tenant')];
    return new turn.LogsOnDisk(toLogsFolder(this.config.dataDir));
  }

  async #openTurnPath(): Promise<TurnPath> {
    const [redis, { openTurnPath }] = [await this.redis(), await import('@concierge/core')];
    return (this.#turnPath ??= openTurnPath(redis, this.#stack, { dataDir: this.config.dataDir, log: this.log }));
  }
}
