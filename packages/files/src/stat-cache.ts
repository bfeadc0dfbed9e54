import { lstatSync, type Stats } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { isSystemError } from './system-error.ts';

/** What a look at a local disk's cache never takes; a network file system's answer does. */
const SLOW_LOOK_MS = 0.3;
/**
 * A busy machine makes any call slow now and then: so many more slow ones than one in `forgiven` show that it is the
 * disk. So many looks through the thread pool cost the main thread as much as one slow look.
 */
const slowCallsMax = 8;
const forgiven = 16;
const distrustMs = 30_000;

/**
 * Whether looking at files in place, without a thread, is cheap here. On a local disk it costs two or three
 * microseconds, the way through the thread pool five to thirty times that; on a network file system it would stop the
 * whole process for each answer. So it is tried, timed, and left for a while when it proves slow.
 */
export class StatCachePolicy {
  readonly #now: () => number;
  readonly #slowMs: number;
  #slowness = 0;
  #distrustedUntilMs = -Infinity;

  constructor({ now = () => performance.now(), slowMs = SLOW_LOOK_MS }: { readonly now?: () => number; readonly slowMs?: number } = {}) {
    this.#now = now;
    this.#slowMs = slowMs;
  }

  get inPlace(): boolean {
    return this.#now() >= this.#distrustedUntilMs;
  }

  /** Runs `look` in place and notes how long it took. */
  time<Result>(look: () => Result): Result {
    const startedMs = this.#now();
    try {
      return look();
    } finally {
      this.note(this.#now() - startedMs);
    }
  }

  /** Notes how long something took that was to be quick. */
  note(ms: number): void {
    if (ms < this.#slowMs) {
      this.#slowness = Math.max(0, this.#slowness - 1 / forgiven);
      return;
    }
    this.#slowness += 1;
    if (this.#slowness < slowCallsMax) return;
    this.#slowness = 0;
    this.#distrustedUntilMs = this.#now() + distrustMs;
  }
}

/** One for the process: all of its files are on one file system. */
const policy = new StatCachePolicy();

/** Looks at something small: with `inPlace` while that is quick, else with `inPool`, through the thread pool. */
export async function lookQuickly<Result>(inPlace: () => Result, inPool: () => Promise<Result>): Promise<Result> {
  return policy.inPlace ? policy.time(inPlace) : inPool();
}

/** What is at the path itself, links not followed; undefined when nothing is. Rejects as `lstat` does otherwise. */
export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  return lookQuickly(
    () => lstatSync(path, { throwIfNoEntry: false }),
    async () => lstatInPool(path),
  );
}

async function lstatInPool(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** A change this soon after another may leave the same times behind: what was read so early is read again. */
const racyMs = 1000;

interface Entry<T> {
  readonly signature: string;
  readonly isSettled: boolean;
  readonly value: T;
}

/**
 * What was made of files and folders, as long as `lstat` shows they are the same: an edit by anyone, on any machine, is
 * seen by the next `get`, and the usual `get` costs one system call.
 */
export class StatCache<T extends NonNullable<unknown>> {
  readonly #maxEntries: number;
  /**
   * Made with the first entry, and without room ahead of use (`max` would allocate all of it): most tenants that are
   * open are idle.
   */
  #entries: LRUCache<string, Entry<T>> | undefined;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  /** undefined when nothing is there. Throws what `read` throws, and keeps nothing then. */
  async get(path: string, read: () => Promise<T>): Promise<T | undefined> {
    const stats = await statIfThere(path);
    if (stats === undefined) {
      this.#entries?.delete(path);
      return undefined;
    }
    const signature = toStatSignature(stats);
    const entry = this.#entries?.get(path);
    if (entry?.isSettled === true && entry.signature === signature) return entry.value;
    // The time before reading: what changes while we read is newer than that.
    const isSettled = stats.ctimeMs < Date.now() - racyMs;
    const value = await read();
    this.#entries ??= new LRUCache({ maxSize: this.#maxEntries, sizeCalculation: () => 1 });
    this.#entries.set(path, { signature, isSettled, value });
    return value;
  }

  /** The next `get` reads again, whatever `lstat` returns. */
  forget(path: string): void {
    this.#entries?.delete(path);
  }
}

/** Equal for two looks: nothing has changed between them, as far as `lstat` shows. */
export function toStatSignature({ ino, size, mtimeMs, ctimeMs, nlink, mode }: Stats): string {
  return [ino, size, mtimeMs, ctimeMs, nlink, mode].join(':');
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstatIfThere(path);
  } catch (error) {
    if (isSystemError(error, 'ENOTDIR', 'ELOOP')) return undefined;
    throw error;
  }
}
