import { isSystemError, recordMaxBytes, type LogRecord, type WriteAheadLog } from '@concierge/files';
import type { AcceptedTurn, TurnInput } from '@concierge/contract';
import { askSlots, failpoint, type Log } from '@concierge/runtime';
import type { Publications, TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import { askInTime, fileUnanswered, findEndedIn, renderAccepted, renderRecord, type UnsettledTurn } from './log-records.ts';

/** A turn that has ended by then leaves the log; otherwise it is asked for again when it is some times as old. */
const ASK_AFTER_MS = 500;
const ASK_AGAIN_TIMES = 3;
/** One that has not ended by then gets an inbox file: most turns never do. */
const FILE_AFTER_MS = 5000;
/** After a tenant's files could not be written, or a session's not be synced. */
const RETRY_AFTER_MS = 2000;
const FILED_AT_ONCE = 500;
/**
 * Files that are written in one look while the log is short: 200 a second. Most of what a flood brings is answered
 * before it has a file, and a file costs as much as an acceptance.
 */
const FILED_UNHURRIED = 50;
/** A longer log is filed as fast as it goes: a recovery reads all of it. Of characters. */
const UNFILED_MAX_LENGTH = 32 * 1024 * 1024;
const NOTED_AT_ONCE = 2000;
/** A longer session is published by its files alone. Of characters, of which most are one byte. */
const PUBLISHED_MAX_LENGTH = 192 * 1024;
/** What a recovery reads is not much more. */
const PUBLISHED_MAX_BYTES = 32 * 1024 * 1024;

/** A turn that is on disk in the log of this process. */
export interface LoggedTurn {
  readonly logId: string;
  /** What its inbox file will contain. */
  readonly content: string;
  /** Its caller has the answer: from now on the log takes care of it. */
  release(): void;
  /** It is in a file, or was refused: the record is of no use any more. Noted in the log when it returns. */
  settle(): Promise<void>;
}

/** A turn that is accepted: in the log when it has a record there, in its file otherwise. */
export interface Written {
  readonly input: TurnInput;
  readonly turn: AcceptedTurn;
  readonly logged: LoggedTurn | undefined;
}

export interface Entry extends UnsettledTurn {
  readonly scope: TenantScope;
  readonly appended: Promise<LogRecord>;
  readonly appendedMs: number;
  /** Its caller has the answer. */
  isReleased: boolean;
  /** When Redis is asked whether it has ended. */
  askMs: number;
}

export interface OpenLogOptions {
  readonly id: string;
  readonly wal: WriteAheadLog;
  readonly redis: Redis;
  readonly log: Log;
}

/**
 * One write-ahead log: of accepted turns, until they have ended or have files, and of published sessions, until their
 * files are synced.
 */
export class OpenLog {
  readonly id: string;
  readonly #wal: WriteAheadLog;
  readonly #redis: Redis;
  readonly #log: Log;
  /** By turn id, in the order of their records. */
  readonly #entries = new Map<string, Entry>();
  /** Of the contents of all entries. */
  #length = 0;
  /** Settled since the log was told. */
  readonly #settled: string[] = [];
  /** Of tenants whose files could not be written. */
  readonly #nextFileMs = new Map<string, number>();
  readonly #published: PublishedSessions;
  /** Publications that are being written. */
  #recording = 0;
  #usedMs = performance.now();

  constructor({ id, wal, redis, log }: OpenLogOptions) {
    this.id = id;
    this.#wal = wal;
    this.#redis = redis;
    this.#log = log;
    this.#published = new PublishedSessions(log);
  }

  /** What keeps it from being removed. */
  get size(): number {
    return this.#entries.size + this.#published.size + this.#recording;
  }

  /** Whether it takes a publication of this length: not when the syncs are far behind. */
  takes(length: number): boolean {
    return length <= PUBLISHED_MAX_LENGTH && this.#published.bytes < PUBLISHED_MAX_BYTES;
  }

  get idleMs(): number {
    return this.size === 0 ? performance.now() - this.#usedMs : 0;
  }

  find(turnId: string): Entry | undefined {
    return this.#entries.get(turnId);
  }

  /** undefined for a turn that is too long for a record. `appended` settles when it is on disk, or is not. */
  add({ scope, ...turn }: Omit<UnsettledTurn, 'logId'> & Pick<Entry, 'scope'>): Entry | undefined {
    const text = renderAccepted(turn.identity, turn.content);
    if (Buffer.byteLength(text) > recordMaxBytes) return undefined;
    const appended = this.#wal.append(text);
    this.#usedMs = performance.now();
    const entry: Entry = {
      ...turn,
      logId: this.id,
      scope,
      appended,
      appendedMs: this.#usedMs,
      isReleased: false,
      askMs: this.#usedMs + ASK_AFTER_MS,
    };
    this.#entries.set(turn.turn.turnId, entry);
    this.#length += entry.content.length;
    return entry;
  }

  /** As `Publications.record`. Rejects when its record cannot be written. */
  async publish({ text: content, ...published }: Parameters<Publications['record']>[0]): Promise<boolean> {
    const { tenantId, identity, sessionId } = published;
    const text = renderRecord({ kind: 'published', tenantId, identity, sessionId }, content);
    const bytes = Buffer.byteLength(text);
    if (bytes > recordMaxBytes) return false;
    this.#recording += 1;
    try {
      this.#published.add(published, { record: await this.#wal.append(text), bytes });
    } finally {
      this.#recording -= 1;
    }
    this.#usedMs = performance.now();
    return true;
  }

  /** Its record could not be written. */
  drop({ turn, content }: Entry): void {
    if (this.#entries.delete(turn.turnId)) this.#length -= content.length;
  }

  toLoggedTurn(entry: Entry): LoggedTurn {
    const settle = async (): Promise<void> => {
      this.#settle([entry]);
      await this.#noteSettled();
    };
    return { logId: this.id, content: entry.content, release: () => (entry.isReleased = true), settle };
  }

  /**
   * Drops turns that have ended, files those that have not ended for long, and syncs sessions; with `all`, whatever
   * their age.
   */
  async settleOld({ all = false } = {}): Promise<void> {
    const nowMs = all ? Infinity : performance.now();
    const released = this.#entries
      .values()
      .filter(({ isReleased }) => isReleased)
      .toArray();
    const asked = released.filter(({ askMs }) => askMs <= nowMs);
    for (const entry of asked) entry.askMs = entry.appendedMs + ASK_AGAIN_TIMES * (performance.now() - entry.appendedMs);
    this.#settle(await findEndedIn(this.#redis, asked));
    const old = released.filter((entry) => entry.appendedMs <= nowMs - FILE_AFTER_MS && this.#mayFile(entry));
    const some = all || this.#length > UNFILED_MAX_LENGTH ? old : old.slice(0, FILED_UNHURRIED);
    for (const [scope, entries] of Map.groupBy(some, (entry) => entry.scope)) await this.#file(scope, entries.slice(0, FILED_AT_ONCE));
    await this.#noteSettled();
    await this.#published.syncOld({ all });
  }

  /** For the end of the process: no caller waits for an answer any more. */
  releaseAll(): void {
    for (const entry of this.#entries.values()) entry.isReleased = true;
    this.#nextFileMs.clear();
    this.#published.retryAll();
  }

  async rotate(): Promise<void> {
    await this.#wal.rotate();
  }

  /** Call when it has no entries. */
  async remove(): Promise<void> {
    await this.#wal.remove().catch((error: unknown) => {
      if (!isSystemError(error, 'ENOENT')) this.#log.warn({ err: error, log: this.id }, 'cannot remove a write-ahead log');
    });
    await askSlots(this.#redis, async (slot) => askInTime(slot, async () => slot.zrem(keyOf.logs, this.id))).catch(() => undefined);
  }

  /** A tenant whose files could not be written waits. */
  #mayFile({ scope, turn }: Entry): boolean {
    return this.#entries.has(turn.turnId) && performance.now() >= (this.#nextFileMs.get(scope.tenantId) ?? 0);
  }

  /** A tenant whose files cannot be written keeps its turns in the log, and no other tenant's. */
  async #file(scope: TenantScope, entries: readonly Entry[]): Promise<void> {
    try {
      await fileUnanswered(this.#redis, scope, { turns: entries, repeatsEnds: true });
      await failpoint('log.after-file');
      this.#settle(entries);
      this.#nextFileMs.delete(scope.tenantId);
    } catch (error) {
      this.#nextFileMs.set(scope.tenantId, performance.now() + RETRY_AFTER_MS);
      this.#log.error({ err: error, tenantId: scope.tenantId }, 'accepted turns stay in the write-ahead log');
    }
  }

  #settle(entries: readonly Entry[]): void {
    for (const { turn, content, appended } of entries) {
      if (!this.#entries.delete(turn.turnId)) continue;
      this.#length -= content.length;
      this.#settled.push(turn.turnId);
      appended.then(
        (record) => record.settle(),
        () => undefined,
      );
    }
  }

  /** A recovery looks at fewer turns then; it would find itself that they have ended. */
  async #noteSettled(): Promise<void> {
    const turnIds = this.#settled.splice(0, NOTED_AT_ONCE);
    if (turnIds.length === 0) return;
    // A log that takes no more records is recovered, or removed, without the note.
    const note = await this.#wal.append(renderRecord({ kind: 'settled', turnIds })).catch(() => undefined);
    note?.settle();
  }
}

export async function isAppended({ appended }: Entry): Promise<boolean> {
  return appended.then(
    () => true,
    () => false,
  );
}

/** Most sessions that are written to are written to again by then: they are synced once for all of it. */
const SYNC_AFTER_MS = 10_000;
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
