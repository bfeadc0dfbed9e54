import { join } from 'node:path';
import type { AcceptedTurn } from '@concierge/contract';
import { FolderSync, WriteAheadLog } from '@concierge/files';
import { askSlots, background, failpoint, RedisScript, type Log } from '@concierge/runtime';
import { renderTurn, type Publications, type TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { queuePrefix } from '../keys.ts';
import { askInTime, LogsOnDisk, newLogId } from './log-records.ts';
import { isAppended, OpenLog, type Entry, type LoggedTurn } from './open-log.ts';

const renewLog = new RedisScript(new URL('./log-renew.lua', import.meta.url));
const TICK_MS = 250;
const RENEW_EVERY_MS = 1000;
const CLOSE_AFTER_MS = 60_000;
/** Less than after which a log is given up (log-recovery.ts). */
const RENEWED_MAX_MS = 5000;
/** After a log could not be opened or written. */
const RETRY_AFTER_MS = 2000;

/** What became of a turn that was to be appended. */
export type Appended = LoggedTurn | 'exists' | undefined;

/** A turn, and whose it is. */
type Identified = Pick<Entry, 'turn' | 'identity'>;

export interface ProcessLogOptions {
  readonly redis: Redis;
  /** Of the logs of all processes: tenants/.wal */
  readonly folder: string;
  readonly log: Log;
}

/**
 * The write-ahead log of what this process accepts and publishes (docs/decisions/0030-write-ahead-log.md). A turn is
 * accepted when its record is on disk; workers get it from Redis. A turn that is unanswered after some seconds gets its
 * inbox file, one that has ended never needs it. A session is published when its files are in place and its record is
 * on disk; they are synced some seconds later. There is a log only while there is something to record: the first turns
 * and sessions go into their files at once, and so does each turn that Redis does not keep in order.
 *
 * closed → opening → open → retired (Redis does not know it any more, or the disk refused a write) → closed; a log of a
 * process that died is recovered by another one (log-recovery.ts).
 */
export class ProcessLog implements Publications {
  readonly #options: ProcessLogOptions;
  readonly #folders = new FolderSync();
  readonly #disk: LogsOnDisk;
  readonly #retired = new Set<OpenLog>();
  #open: OpenLog | undefined;
  #opening: Promise<void> | undefined;
  #nextOpenMs = -Infinity;
  #renewedMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #tick: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: ProcessLogOptions) {
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
   * Turns of one tenant, in their order. Each is on disk when it resolves. `exists`: this process has accepted it
   * before, lately. undefined: it needs its file.
   */
  async append(scope: TenantScope, turns: readonly Identified[]): Promise<readonly Appended[]> {
    const open = this.#open;
    if (open === undefined) {
      background(this.open(), this.#options.log);
      return turns.map(() => undefined);
    }
    // Each is entered before the next one is looked at, and nothing is waited for meanwhile: that is their order.
    return await Promise.all(turns.map(async ({ turn, identity }) => this.#appendTo(open, { scope, turn, identity })));
  }

  async #appendTo(open: OpenLog, { scope, turn, identity }: Identified & Pick<Entry, 'scope'>): Promise<Appended> {
    const known = this.#findEntry(turn.turnId);
    if (known !== undefined) return (await isAppended(known)) ? 'exists' : undefined;
    const entry = open.add({ turn, tenantId: turn.tenantId, identity, content: renderTurn(turn), scope });
    if (entry === undefined) return undefined;
    try {
      await entry.appended;
    } catch (error) {
      open.drop(entry);
      this.#retire(open, error);
      return undefined;
    }
    await failpoint('log.after-append');
    return open.toLoggedTurn(entry);
  }

  takes(length: number): boolean {
    if (this.#open === undefined) background(this.open(), this.#options.log);
    return this.#open?.takes(length) === true;
  }

  async record(publication: Parameters<Publications['record']>[0]): Promise<boolean> {
    const open = this.#open;
    // Frozen until now, and perhaps given up for dead: what is appended while another one recovers the log is lost.
    if (open === undefined || performance.now() - this.#renewedMs > RENEWED_MAX_MS) return false;
    try {
      return await open.publish(publication);
    } catch (error) {
      this.#retire(open, error);
      return false;
    }
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

  /** What is unanswered gets its file, and the log goes. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#rest();
    await this.#opening?.catch(() => undefined);
    await this.#tick;
    for (const log of this.#logs()) {
      log.releaseAll();
      this.#retire(log);
    }
    const count = (): number => this.#logs().reduce((sum, { size }) => sum + size, 0);
    for (let left = Infinity; count() < left; await this.#runTick()) left = count();
    // What is still there could not be written: another process recovers it.
    for (const { id } of this.#retired) this.#options.log.warn({ log: id }, 'accepted turns stay in the write-ahead log');
  }

  #findEntry(turnId: string): Entry | undefined {
    for (const log of this.#logs()) {
      const entry = log.find(turnId);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #logs(): OpenLog[] {
    return [...this.#retired, ...(this.#open === undefined ? [] : [this.#open])];
  }

  async #openNew(): Promise<void> {
    const { folder, redis, log } = this.#options;
    const id = newLogId();
    this.#nextOpenMs = performance.now() + RETRY_AFTER_MS;
    try {
      // Known before there is a folder: a folder whose log is not known is a dead one's.
      await this.#renew(id, true);
      const wal = await WriteAheadLog.create({ folder: join(folder, id), folders: this.#folders });
      this.#open = new OpenLog({ id, wal, redis, log });
      this.#renewedMs = performance.now();
      this.#timer ??= setInterval(() => {
        this.#tick ??= this.#runTick().finally(() => (this.#tick = undefined));
      }, TICK_MS).unref();
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

  /** Never rejects. */
  async #runTick(): Promise<void> {
    try {
      const open = this.#open;
      if (open !== undefined) await this.#keep(open);
      for (const log of this.#logs()) await log.settleOld({ all: this.#retired.has(log) });
      for (const log of this.#retired) {
        if (log.size === 0 && this.#retired.delete(log)) await log.remove();
      }
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
      const isKnown = await this.#renew(open.id, false).catch(() => undefined);
      if (isKnown === false) return this.#retire(open);
      if (isKnown === true) this.#renewedMs = performance.now();
      // Where the disk is full, what is accepted next fails on it, as everything behind it would.
      await open.rotate().catch((error: unknown) => this.#retire(open, error));
    }
    if (open.idleMs > CLOSE_AFTER_MS) this.#retire(open);
  }

  async #renew(log: string, isNew: boolean): Promise<boolean> {
    const given = JSON.stringify({ log, isNew });
    const renew = async (slot: Redis): Promise<unknown> => askInTime(slot, async () => renewLog.run(slot, [queuePrefix], [given]));
    // A slot that is away does not know it when it comes back, and neither does one that comes back empty.
    return (await askSlots(this.#options.redis, renew)).every((answer) => answer === 1);
  }
}
