import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { AcceptedTurn } from '@concierge/contract';
import { FolderSync, isSystemError, recordMaxBytes, WriteAheadLog, type LogRecord } from '@concierge/files';
import { background, failpoint, RedisScript, type Log } from '@concierge/runtime';
import { renderTurn, type LoggedTurns, type TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf, queuePrefix } from '../keys.ts';
import type { Lanes } from '../lanes/lanes.ts';
import { LogsOnDisk, renderAccepted, renderSettled, type UnsettledTurn } from './log-records.ts';
import { askInTime, fileUnanswered, findEndedIn } from './unanswered.ts';

const renewLog = new RedisScript(new URL('./log-renew.lua', import.meta.url));
const TICK_MS = 250;
const RENEW_EVERY_MS = 1000;
/** A turn that has ended by then leaves the log. */
const ASK_AFTER_MS = 500;
/** One that has not ended by then gets an inbox file: most turns never do. */
const FILE_AFTER_MS = 5000;
const CLOSE_AFTER_MS = 60_000;
/** After a log could not be opened or written. */
const RETRY_AFTER_MS = 2000;
const FILED_AT_ONCE = 500;
const NOTED_AT_ONCE = 2000;

export interface AcceptanceLogOptions {
  readonly redis: Redis;
  readonly lanes: Pick<Lanes, 'readiness'>;
  /** Of the logs of all processes: tenants/.wal */
  readonly folder: string;
  readonly log: Log;
}

/** A turn that is on disk in the log of this process. */
export interface LoggedTurn {
  readonly logId: string;
  /** What its inbox file will contain. */
  readonly content: string;
  /** Its caller has the answer: from now on the log takes care of it. */
  release(): void;
  /** It is in a file, or was refused: the record is of no use any more. */
  settle(): Promise<void>;
}

interface Entry extends UnsettledTurn {
  readonly scope: TenantScope;
  readonly appended: Promise<LogRecord>;
  readonly appendedMs: number;
  isReleased: boolean;
  /** Redis was asked once whether it has ended. */
  isAsked: boolean;
}

interface OpenLog {
  readonly id: string;
  readonly wal: WriteAheadLog;
  /** By turn id, in the order of their records. */
  readonly entries: Map<string, Entry>;
  /** Settled since the log was told. */
  settled: string[];
  usedMs: number;
}

/**
 * The write-ahead log of what this process accepts (docs/decisions/0030-acceptance-log.md). A turn is accepted when its
 * record is on disk; workers get it from Redis. A turn that is unanswered after some seconds gets its inbox file, one
 * that has ended never needs it. There is a log only while turns are accepted: the first of them have files at once,
 * and so has each turn that Redis does not keep in order.
 *
 * closed → opening → open → retired (Redis does not know it any more, or the disk refused a write) → closed; a log of a
 * process that died is recovered by another one (log-recovery.ts).
 */
export class AcceptanceLog implements LoggedTurns {
  readonly #options: AcceptanceLogOptions;
  readonly #folders = new FolderSync();
  readonly #disk: LogsOnDisk;
  readonly #retired = new Set<OpenLog>();
  #open: OpenLog | undefined;
  #opening: Promise<void> | undefined;
  #nextOpenMs = -Infinity;
  /** Of tenants whose files could not be written. */
  readonly #nextFileMs = new Map<string, number>();
  #renewedMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #tick: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: AcceptanceLogOptions) {
    this.#options = options;
    this.#disk = new LogsOnDisk(options.folder);
  }

  /** Opens the log, where there is none; otherwise the first turns that are accepted open it, and do not wait. */
  async open(): Promise<void> {
    if (this.#open !== undefined || this.#isStopped || performance.now() < this.#nextOpenMs) return;
    this.#opening ??= this.#openNew().finally(() => (this.#opening = undefined));
    await this.#opening;
  }

  /**
   * On disk when it resolves. `exists`: this process has accepted it before, lately. undefined: there is no log that
   * takes it, and it needs its file.
   */
  async append(scope: TenantScope, turn: AcceptedTurn): Promise<LoggedTurn | 'exists' | undefined> {
    const open = this.#open;
    if (open === undefined) {
      background(this.open(), this.#options.log);
      return undefined;
    }
    const identity = await scope.identity();
    const { turnId, tenantId } = turn;
    const content = renderTurn(turn);
    const text = renderAccepted(identity, content);
    const known = this.#findEntry(turnId);
    if (known !== undefined && (await isAppended(known))) return 'exists';
    // Nothing is waited for between a look that finds none and the entry.
    if (open !== this.#open || this.#findEntry(turnId) !== undefined || Buffer.byteLength(text) > recordMaxBytes) return undefined;
    const appended = open.wal.append(text);
    open.usedMs = performance.now();
    const entry: Entry = {
      logId: open.id,
      turn,
      tenantId,
      identity,
      content,
      scope,
      appended,
      appendedMs: open.usedMs,
      isReleased: false,
      isAsked: false,
    };
    open.entries.set(turnId, entry);
    try {
      await appended;
    } catch (error) {
      open.entries.delete(turnId);
      this.#retire(open, error);
      return undefined;
    }
    await failpoint('log.after-append');
    return {
      logId: open.id,
      content,
      release: () => (entry.isReleased = true),
      settle: async () => {
        this.#settle(open, [entry]);
        // Before a refusal is answered: what was refused must not be found by a recovery.
        await this.#noteSettled(open);
      },
    };
  }

  /** A turn that this process accepted and that has no file yet. On disk when it is returned. */
  async findOwn(turnId: string): Promise<AcceptedTurn | undefined> {
    const entry = this.#findEntry(turnId);
    return entry !== undefined && (await isAppended(entry)) ? entry.turn : undefined;
  }

  /** The same turn in the log of another process, from the disk: for the time in which Redis does not answer. */
  async findElsewhere(turn: AcceptedTurn, { logId }: LoggedTurn): Promise<AcceptedTurn | undefined> {
    return (await this.#disk.find(turn, logId))?.turn;
  }

  async read(tenantId: string, turnId: string): Promise<string | undefined> {
    const { redis, lanes } = this.#options;
    try {
      const [content, state] = await askInTime(redis, async () =>
        Promise.all([redis.hget(keyOf.logged(tenantId), turnId), redis.hget(keyOf.turn(turnId), 'state')]),
      );
      if (content !== null) return content;
      // It has a file or has ended, or there never was such a turn; unless Redis was emptied.
      if (state !== null || (await askInTime(redis, async () => lanes.readiness())).isReady) return undefined;
    } catch {
      // What Redis cannot answer, the disk can.
    }
    return this.#disk.read(tenantId, turnId);
  }

  async turnIds(tenantId: string): Promise<readonly string[]> {
    const { redis, lanes } = this.#options;
    const none: { readonly ids: readonly string[]; readonly isReady: boolean } = { ids: [], isReady: false };
    const ask = async (): Promise<typeof none> => {
      const [ids, readiness] = await Promise.all([redis.hkeys(keyOf.logged(tenantId)), lanes.readiness()]);
      return { ids, isReady: readiness.isReady };
    };
    const { ids, isReady } = await askInTime(redis, ask).catch(() => none);
    if (isReady) return ids;
    return [...new Set([...ids, ...(await this.#disk.turnIds(tenantId))])];
  }

  /** What is unanswered gets its file, and the log goes. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#rest();
    await this.#opening?.catch(() => undefined);
    await this.#tick;
    for (const log of this.#logs()) {
      for (const entry of log.entries.values()) entry.isReleased = true;
      this.#retire(log);
    }
    for (let left = Infinity; this.#countEntries() < left;) {
      left = this.#countEntries();
      await this.#runTick();
    }
    // What is still there could not be written: another process recovers it.
    for (const { id } of this.#retired) this.#options.log.warn({ log: id }, 'accepted turns stay in the write-ahead log');
  }

  #countEntries(): number {
    return this.#logs().reduce((count, { entries }) => count + entries.size, 0);
  }

  #findEntry(turnId: string): Entry | undefined {
    for (const { entries } of this.#logs()) {
      const entry = entries.get(turnId);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #logs(): OpenLog[] {
    return [...this.#retired, ...(this.#open === undefined ? [] : [this.#open])];
  }

  async #openNew(): Promise<void> {
    const { folder, log } = this.#options;
    const id = randomUUID();
    this.#nextOpenMs = performance.now() + RETRY_AFTER_MS;
    try {
      // Known before there is a folder: a folder whose log is not known is a dead one's.
      await this.#renew(id, true);
      const wal = await WriteAheadLog.create({ folder: join(folder, id), folders: this.#folders });
      this.#open = { id, wal, entries: new Map(), settled: [], usedMs: performance.now() };
      this.#renewedMs = performance.now();
      this.#timer ??= setInterval(() => this.#startTick(), TICK_MS).unref();
    } catch (error) {
      log.warn({ err: error }, 'cannot open a write-ahead log: each accepted turn is written to its file');
    }
  }

  #retire(log: OpenLog, error?: unknown): void {
    if (this.#open !== log) return;
    if (error !== undefined) this.#options.log.warn({ err: error, log: log.id }, 'the write-ahead log takes no more turns');
    this.#retired.add(log);
    this.#open = undefined;
    this.#nextOpenMs = performance.now() + (error === undefined ? 0 : RETRY_AFTER_MS);
  }

  #startTick(): void {
    this.#tick ??= this.#runTick().finally(() => (this.#tick = undefined));
  }

  /** Never rejects. */
  async #runTick(): Promise<void> {
    try {
      const open = this.#open;
      if (open !== undefined) await this.#keep(open);
      for (const log of this.#logs()) await this.#settleOld(log);
      for (const log of this.#retired) if (log.entries.size === 0) await this.#close(log);
      if (this.#logs().length === 0) this.#rest();
    } catch (error) {
      this.#options.log.error({ err: error }, 'cannot look after the write-ahead log');
    }
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #keep(open: OpenLog): Promise<void> {
    if (performance.now() - this.#renewedMs >= RENEW_EVERY_MS) {
      // Redis that cannot be asked acknowledges nothing, either.
      const isKnown = await this.#renew(open.id, false).catch(() => true);
      if (!isKnown) return this.#retire(open);
      this.#renewedMs = performance.now();
    }
    await open.wal.rotate().catch((error: unknown) => this.#retire(open, error));
    if (open.entries.size === 0 && performance.now() - open.usedMs > CLOSE_AFTER_MS) this.#retire(open);
  }

  async #renew(log: string, isNew: boolean): Promise<boolean> {
    const { redis } = this.#options;
    return (await askInTime(redis, async () => renewLog.run(redis, [queuePrefix], [JSON.stringify({ log, isNew })]))) === 1;
  }

  async #settleOld(log: OpenLog): Promise<void> {
    const nowMs = this.#retired.has(log) ? Infinity : performance.now();
    const released = log.entries
      .values()
      .filter(({ isReleased }) => isReleased)
      .toArray();
    const fresh = released.filter((entry) => !entry.isAsked && entry.appendedMs <= nowMs - ASK_AFTER_MS);
    for (const entry of fresh) entry.isAsked = true;
    const ended = await findEndedIn(this.#options.redis, fresh);
    this.#settle(log, ended);
    const old = released.filter((entry) => entry.appendedMs <= nowMs - FILE_AFTER_MS && log.entries.has(entry.turn.turnId));
    for (const [scope, entries] of Map.groupBy(old, (entry) => entry.scope)) await this.#file(log, scope, entries.slice(0, FILED_AT_ONCE));
    await this.#noteSettled(log);
  }

  /** A tenant whose files cannot be written keeps its turns in the log, and no other tenant's. */
  async #file(log: OpenLog, scope: TenantScope, entries: readonly Entry[]): Promise<void> {
    if (performance.now() < (this.#nextFileMs.get(scope.tenantId) ?? 0) && !this.#isStopped) return;
    try {
      await fileUnanswered(this.#options.redis, scope, entries);
      await failpoint('log.after-file');
      this.#settle(log, entries);
      this.#nextFileMs.delete(scope.tenantId);
    } catch (error) {
      this.#nextFileMs.set(scope.tenantId, performance.now() + RETRY_AFTER_MS);
      this.#options.log.error({ err: error, tenantId: scope.tenantId }, 'accepted turns stay in the write-ahead log');
    }
  }

  #settle(log: OpenLog, entries: readonly Entry[]): void {
    for (const { turn, appended } of entries) {
      if (!log.entries.delete(turn.turnId)) continue;
      log.settled.push(turn.turnId);
      appended.then(
        (record) => record.settle(),
        () => undefined,
      );
    }
  }

  /** A recovery looks at fewer turns then; it would find itself that they have ended. */
  async #noteSettled(log: OpenLog): Promise<void> {
    const turnIds = log.settled.splice(0, NOTED_AT_ONCE);
    if (turnIds.length === 0) return;
    const note = await log.wal.append(renderSettled(turnIds)).catch((error: unknown) => this.#retire(log, error));
    note?.settle();
  }

  async #close(log: OpenLog): Promise<void> {
    this.#retired.delete(log);
    await log.wal.remove().catch((error: unknown) => {
      if (!isSystemError(error, 'ENOENT')) this.#options.log.warn({ err: error, log: log.id }, 'cannot remove a write-ahead log');
    });
    const { redis } = this.#options;
    await askInTime(redis, async () => redis.zrem(keyOf.logs, log.id)).catch(() => undefined);
  }
}

async function isAppended({ appended }: Entry): Promise<boolean> {
  return appended.then(
    () => true,
    () => false,
  );
}
