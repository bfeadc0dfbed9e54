import type { LogRecord } from '@concierge/files';
import type { Log } from '@concierge/runtime';

/** Most sessions that are written to are written to again by then: they are synced once for all of it. */
const SYNC_AFTER_MS = 10_000;
/** After files that could not be synced. */
const RETRY_AFTER_MS = 2000;
const SYNCED_AT_ONCE = 8;
/** In one look: the log has more to look after. */
const SYNCED_IN_A_LOOK = 200;

interface Published {
  readonly tenantId: string;
  readonly sync: () => Promise<void>;
  /** That no sync covers yet. */
  records: LogRecord[];
  bytes: number;
  dueMs: number;
  /** Its files could not be synced: not before. */
  retryMs: number;
}

/** Sessions whose newest revisions are on disk in a log, and perhaps not yet in their files. */
export class PublishedSessions {
  readonly #log: Log;
  /** By tenant and session. */
  readonly #sessions = new Map<string, Published>();
  #bytes = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Of records that no sync covers yet. */
  get bytes(): number {
    return this.#bytes;
  }

  add(
    { tenantId, sessionId, sync }: Pick<Published, 'tenantId' | 'sync'> & { readonly sessionId: string },
    { record, bytes }: { readonly record: LogRecord; readonly bytes: number },
  ): void {
    const key = `${tenantId}/${sessionId}`;
    const dueMs = performance.now() + SYNC_AFTER_MS;
    const published = this.#sessions.get(key) ?? { tenantId, sync, records: [], bytes: 0, dueMs, retryMs: 0 };
    published.records.push(record);
    published.bytes += bytes;
    this.#bytes += bytes;
    this.#sessions.set(key, published);
  }

  /** Syncs those that are due; with `all`, whatever their age. */
  async syncOld({ all = false } = {}): Promise<void> {
    const nowMs = performance.now();
    const due = this.#sessions
      .entries()
      .filter(([, { dueMs, retryMs }]) => (all || dueMs <= nowMs) && retryMs <= nowMs)
      .take(SYNCED_IN_A_LOOK)
      .toArray();
    for (let at = 0; at < due.length; at += SYNCED_AT_ONCE) {
      await Promise.all(due.slice(at, at + SYNCED_AT_ONCE).map(async ([key, published]) => this.#sync(key, published)));
    }
  }

  /** For the end of the process: what failed is tried once more. */
  retryAll(): void {
    for (const published of this.#sessions.values()) published.retryMs = 0;
  }

  /** A publication that comes meanwhile may be in it or not: its record stays until the next time. */
  async #sync(key: string, published: Published): Promise<void> {
    const { bytes } = published;
    const records = published.records.splice(0);
    published.bytes = 0;
    try {
      await published.sync();
    } catch (error) {
      published.records.unshift(...records);
      published.bytes += bytes;
      published.retryMs = performance.now() + RETRY_AFTER_MS;
      this.#log.error({ err: error, tenantId: published.tenantId }, 'published sessions stay in the write-ahead log');
      return;
    }
    for (const record of records) record.settle();
    this.#bytes -= bytes;
    published.dueMs = performance.now() + SYNC_AFTER_MS;
    if (published.records.length === 0) this.#sessions.delete(key);
  }
}
