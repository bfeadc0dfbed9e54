import type { HasEnded, LoggedTurns } from '@concierge/tenant';
import { findSlot } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import type { Lanes } from '../lanes/lanes.ts';
import { askInTime, LogsOnDisk } from './log-records.ts';

export interface SharedLogsOptions {
  readonly redis: Redis;
  readonly lanes: Pick<Lanes, 'readiness'>;
  /** Of the logs of all processes: tenants/.wal */
  readonly folder: string;
}

/** Turns in the logs of all processes: from Redis, or from the disk while Redis is away or has lost them. */
export class SharedLogs implements LoggedTurns {
  readonly #options: SharedLogsOptions;
  readonly #disk: LogsOnDisk;

  constructor(options: SharedLogsOptions) {
    this.#options = options;
    this.#disk = new LogsOnDisk(options.folder);
  }

  async read(tenantId: string, turnId: string, hasEnded: HasEnded): Promise<string | undefined> {
    const { lanes } = this.#options;
    const redis = findSlot(this.#options.redis, tenantId);
    try {
      const [content, state] = await askInTime(redis, async () =>
        Promise.all([redis.hget(keyOf.logged(tenantId), turnId), redis.hget(keyOf.turn(turnId), 'state')]),
      );
      if (content !== null) return content;
      // It has a file or has ended, or there never was such a turn; unless Redis was emptied.
      if (state !== null || (await askInTime(redis, async () => lanes.readiness({ slot: redis }))).isReady) return undefined;
    } catch {
      // What Redis cannot answer, the disk can.
    }
    return this.#disk.read(tenantId, turnId, hasEnded);
  }

  async turnIds(tenantId: string, hasEnded: HasEnded): Promise<readonly string[]> {
    const { lanes } = this.#options;
    const redis = findSlot(this.#options.redis, tenantId);
    const none: { readonly ids: readonly string[]; readonly isReady: boolean } = { ids: [], isReady: false };
    const ask = async (): Promise<typeof none> => {
      const [ids, readiness] = await Promise.all([redis.hkeys(keyOf.logged(tenantId)), lanes.readiness({ slot: redis })]);
      return { ids, isReady: readiness.isReady };
    };
    const { ids, isReady } = await askInTime(redis, ask).catch(() => none);
    if (isReady) return ids;
    return [...new Set([...ids, ...(await this.#disk.turnIds(tenantId, hasEnded))])];
  }
}
