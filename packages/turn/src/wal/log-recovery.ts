import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { LaterVersionError, removeLog } from '@concierge/files';
import { failpoint, isUnavailable, RedisScript, listSlots, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf, queuePrefix } from '../keys.ts';
import { askInTime, fileUnanswered, isOfThisBoot, listLogs, readContent, type LogContent } from './log-records.ts';

const sealLog = new RedisScript(new URL('./log-seal.lua', import.meta.url));
/** A process that has not renewed its log for this long is dead, or will find that it was taken for dead. */
const GONE_MS = 10_000;
const LOOK_EVERY_MS = 250;

export interface LogRecoveryOptions {
  readonly redis: Redis;
  readonly tenants: Tenants;
  readonly log: Log;
}

/**
 * Recovers the write-ahead logs of other processes: what is unanswered in them gets its inbox file, and the sessions
 * published in them are put back where they are not on disk.
 */
export class LogRecovery {
  readonly #options: LogRecoveryOptions;

  constructor(options: LogRecoveryOptions) {
    this.#options = options;
  }

  /** Of every process, dead or alive: for a Redis that may have lost what is in no file. Removes no log. */
  async fileAll(afterEach: () => Promise<unknown>): Promise<void> {
    const { logsFolder } = this.#options.tenants;
    for (const logId of await listLogs(logsFolder)) {
      const { turns } = await readContent(logsFolder, logId);
      await this.#recover(logId, { turns, sessions: [], hasLater: false }, { repeatsEnds: true });
      await afterEach();
    }
  }

  /**
   * Call before the first turn of a process. A power cut may have taken the files of sessions, or their content: those
   * are put back before a turn goes on in them. Waits for what is recognised as another machine's by its next renewal.
   */
  async recoverEarlierBoots(): Promise<void> {
    const { redis, tenants } = this.#options;
    const earlier = (await listLogs(tenants.logsFolder)).filter((logId) => !isOfThisBoot(logId));
    for (const logId of earlier) {
      const heard = await redis.zscore(keyOf.logs, logId);
      while (!(await this.#recoverIfDead(logId)) && (await redis.zscore(keyOf.logs, logId)) === heard) await wait(LOOK_EVERY_MS);
    }
  }

  /**
   * Of dead processes, whose logs are sealed first: what is acknowledged is in the log when it is read. The log goes
   * when all of it is in files; a recovery that was cut off is repeated.
   */
  async recoverDead(): Promise<void> {
    for (const logId of await listLogs(this.#options.tenants.logsFolder)) await this.#recoverIfDead(logId);
  }

  async #recoverIfDead(logId: string): Promise<boolean> {
    const { tenants, log } = this.#options;
    if (!(await this.#seal(logId))) return false;
    await failpoint('log.after-seal');
    if (await this.#recover(logId, await readContent(tenants.logsFolder, logId))) {
      await failpoint('log.before-remove');
      await removeLog(join(tenants.logsFolder, logId));
      log.info({ log: logId }, 'recovered the write-ahead log of a process that died');
    }
    return true;
  }

  /**
   * One tenant's broken folder does not stop the others, and neither does what waits for a later version; a disk that
   * takes nothing does, or what was accepted later would overtake what is in the log.
   * @returns whether all of it is in files
   */
  async #recover(logId: string, { turns, sessions, hasLater }: LogContent, { repeatsEnds = false } = {}): Promise<boolean> {
    const { redis, tenants, log } = this.#options;
    let isWhole = !hasLater;
    for (const tenantId of new Set([...sessions, ...turns].map((one) => one.tenantId))) {
      const isOwn = (one: { readonly tenantId: string }): boolean => one.tenantId === tenantId;
      try {
        const scope = await tenants.find(tenantId);
        if (scope === undefined) continue;
        // Sessions first: a turn that one of them contains has ended.
        const identity = await scope.identity();
        const published = sessions.filter((one) => isOwn(one) && one.identity === identity);
        for (const { content } of published) await scope.sessions.restore(content);
        await fileUnanswered(redis, scope, { turns: turns.filter(isOwn), repeatsEnds });
      } catch (error) {
        if (isUnavailable(error) && !(error instanceof LaterVersionError)) throw error;
        isWhole = false;
        log.error({ err: error, tenantId, log: logId }, 'cannot recover what a write-ahead log has of a tenant');
      }
    }
    return isWhole;
  }

  async #seal(log: string): Promise<boolean> {
    const given = JSON.stringify({ log, goneMs: GONE_MS });
    const [first, ...others] = listSlots(this.#options.redis);
    if (first === undefined || (await sealLog.run(first, [queuePrefix], [given])) !== 1) return false;
    // Acceptances are acknowledged in each slot: where one of them is away, the log stays for another look.
    for (const slot of others) {
      const answer = await askInTime(slot, async () => sealLog.run(slot, [queuePrefix], [given])).catch(() => undefined);
      if (answer !== 1) return false;
    }
    return true;
  }
}
