import { join } from 'node:path';
import { removeLog } from '@concierge/files';
import { failpoint, isUnavailable, RedisScript, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { queuePrefix } from '../keys.ts';
import { listLogs, readUnsettled } from './log-records.ts';
import { fileUnanswered } from './unanswered.ts';

const sealLog = new RedisScript(new URL('./log-seal.lua', import.meta.url));
/** A process that has not renewed its log for this long is dead, or will find that it was taken for dead. */
const GONE_MS = 10_000;

export interface LogRecoveryOptions {
  readonly redis: Redis;
  readonly tenants: Tenants;
  readonly log: Log;
}

/** Recovers the write-ahead logs of other processes: what is unanswered in them gets its inbox file. */
export class LogRecovery {
  readonly #options: LogRecoveryOptions;

  constructor(options: LogRecoveryOptions) {
    this.#options = options;
  }

  /** Of every process, dead or alive: for a Redis that may have lost what is in no file. Removes no log. */
  async fileAll(afterEach: () => Promise<unknown>): Promise<void> {
    for (const logId of await listLogs(this.#options.tenants.logsFolder)) {
      await this.#file(logId);
      await afterEach();
    }
  }

  /**
   * Of dead processes, whose logs are sealed first: what is acknowledged is in the log when it is read. The log goes
   * when all of it is in files; a recovery that was cut off is repeated.
   */
  async recoverDead(): Promise<void> {
    const { tenants, log } = this.#options;
    for (const logId of await listLogs(tenants.logsFolder)) {
      if (!(await this.#seal(logId))) continue;
      await failpoint('log.after-seal');
      if (!(await this.#file(logId))) continue;
      await failpoint('log.before-remove');
      await removeLog(join(tenants.logsFolder, logId));
      log.info({ log: logId }, 'recovered the write-ahead log of a process that died');
    }
  }

  /**
   * One tenant's broken folder does not stop the others; a disk that takes nothing does, or what was accepted later
   * would overtake what is in the log.
   * @returns whether all of it is in files
   */
  async #file(logId: string): Promise<boolean> {
    const { redis, tenants, log } = this.#options;
    let isWhole = true;
    for (const [tenantId, own] of Map.groupBy(await readUnsettled(tenants.logsFolder, logId), (one) => one.tenantId)) {
      try {
        const scope = await tenants.find(tenantId);
        if (scope !== undefined) await fileUnanswered(redis, scope, own);
      } catch (error) {
        if (isUnavailable(error)) throw error;
        isWhole = false;
        log.error({ err: error, tenantId, log: logId }, 'cannot recover accepted turns from a write-ahead log');
      }
    }
    return isWhole;
  }

  async #seal(log: string): Promise<boolean> {
    return (await sealLog.run(this.#options.redis, [queuePrefix], [JSON.stringify({ log, goneMs: GONE_MS })])) === 1;
  }
}
