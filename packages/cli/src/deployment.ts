import { once } from 'node:events';
import type { ChannelConnections } from '@concierge/channel';
import { AppError, type AuditAct } from '@concierge/contract';
import type { TurnPath } from '@concierge/core';
import type { FailedTurns } from '@concierge/core/failed-turns';
import type { OperatedTurns } from '@concierge/core/operated-turns';
import type { Reindexing } from '@concierge/core/reindex';
import type { DeadLetters } from '@concierge/core/stuck-deliveries';
import type { RunningParts, TenantOperations } from '@concierge/core/tenant-operations';
import type { RecordChange } from '@concierge/files';
import type { IndexStore } from '@concierge/index';
import { answerDeadline, ConfigError, createLog, findSlot, openRedis, type connectRedis, type Log } from '@concierge/runtime';
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
  readonly #telling: Promise<void>[] = [];
  #tenantOperations: TenantOperations | undefined;

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
    this.#tenants ??= new tenant.Tenants({
      dataDir,
      index,
      keySecret,
      secretsKey,
      tellRecordChange: (change) => void this.#telling.push(this.#tellRecordChange(change)),
      logged,
      log: this.log,
    });
    return this.#tenants;
  }

  /** @throws AppError not_found */
  async scope(tenantId: string): Promise<TenantScope> {
    return await (await this.tenantOperations()).open(tenantId);
  }

  async connections(): Promise<ChannelConnections> {
    const { ChannelConnections: Connections } = await import('@concierge/channel');
    return new Connections({ urls: this.config.providerUrls, publicUrl: this.config.publicUrl });
  }

  /** @throws AppError overloaded, when it does not answer; ConfigError, when the services have other slots */
  async redis(): Promise<Redis> {
    const { redisUrl } = this.config;
    if (redisUrl === undefined) throw new AppError('overloaded', 'Redis is not known: run npm start, or set REDIS_URL.');
    // Its warnings would repeat the one line of the error.
    const log = this.log.child({}, { level: 'silent' });
    this.#redis ??= openRedis({ url: redisUrl, role: 'producer', log, timeoutMs: REDIS_TIMEOUT_MS }, this.#stack);
    const redis = await this.#redis.catch((error: unknown) => {
      const why = error instanceof ConfigError ? ` ${error.problems.join(' ')}` : '';
      throw new AppError('overloaded', `Redis does not answer: is Concierge running?${why}`, { cause: error });
    });
    const { assertSlots } = await import('@concierge/turn');
    await assertSlots(redis);
    return redis;
  }

  async turns(): Promise<Turns> {
    return (await this.#openTurnPath()).turns;
  }

  async handoffRequests(): Promise<HandoffRequests> {
    return (await this.#openTurnPath()).handoffs.desk;
  }

  async close(): Promise<void> {
    await Promise.all(this.#telling);
    await this.#stack.disposeAsync();
  }

  /** What operators do with tenants. */
  async tenantOperations(): Promise<TenantOperations> {
    const [tenants, core] = [await this.tenants(), await import('@concierge/core/tenant-operations')];
    return (this.#tenantOperations ??= new core.TenantOperations({
      dataDir: this.config.dataDir,
      tenants,
      running: async () => this.#findRunning(),
      via: 'cli',
    }));
  }

  /** What operators do with turns of all tenants. */
  async failedTurns(): Promise<FailedTurns> {
    const [tenants, operations] = [await this.tenants(), await this.tenantOperations()];
    const core = await import('@concierge/core/failed-turns');
    return new core.FailedTurns({ tenants, turns: async () => this.turns(), operations });
  }

  /** Turns of all tenants, as operators see them. */
  async operatedTurns(): Promise<OperatedTurns> {
    const [tenants, operations] = [await this.tenants(), await this.tenantOperations()];
    const core = await import('@concierge/core/operated-turns');
    return new core.OperatedTurns({ tenants, turns: async () => this.turns(), operations });
  }

  /** The index of all tenants, compared with their files. */
  async reindexing(): Promise<Reindexing> {
    const [tenants, operations] = [await this.tenants(), await this.tenantOperations()];
    const core = await import('@concierge/core/reindex');
    return new core.Reindexing({ tenants, operations });
  }

  /** What operators do with what has not arrived. */
  async deadLetters(): Promise<DeadLetters> {
    const [tenants, operations] = [await this.tenants(), await this.tenantOperations()];
    const core = await import('@concierge/core/stuck-deliveries');
    return new core.DeadLetters({ tenants, operations });
  }

  /** Puts on record what was done in a tenant. */
  async record(tenantId: string, act: AuditAct, target: string | null): Promise<void> {
    const operations = await this.tenantOperations();
    await operations.record(act, { scope: await operations.open(tenantId), target });
  }

  /** undefined where nothing runs. */
  async #findRunning(): Promise<RunningParts | undefined> {
    try {
      return { turns: await this.turns(), redis: await this.redis() };
    } catch (error) {
      if (error instanceof AppError && error.code === 'overloaded') return undefined;
      throw error;
    }
  }

  /** No process hears it where none runs or Redis is away: the answer is given before this is waited for. */
  async #tellRecordChange(change: RecordChange): Promise<void> {
    try {
      const [redis, turn] = [await this.redis(), await import('@concierge/turn')];
      const slot = findSlot(redis, change.tenantId);
      if (slot.status !== 'ready') await once(slot, 'ready', { signal: answerDeadline(REDIS_TIMEOUT_MS) });
      turn.tellRecordChanges(redis)(change);
    } catch (error) {
      this.log.debug({ err: error }, 'services see the change in the files alone');
    }
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
