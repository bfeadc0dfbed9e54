import { lstatSync, open, openSync, readdirSync, readFileSync, type Stats } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isSystemError } from './system-error.ts';

/** What a look at a local disk's cache never takes; a network file system's answer does. */
const slowMs = 0.3;
/**
 * A busy machine makes any call slow now and then: so many more slow ones than one in `forgiven` show that it is the
 * disk.
 */
const slowCallsMax = 8;
const forgiven = 64;
const distrustMs = 30_000;

/**
 * Whether looking at files in place, without a thread, is cheap here. On a local disk it costs two or three
 * microseconds, the way through the thread pool five to thirty times that; on a network file system it would stop the
 * whole process for each answer. So it is tried, timed, and left for a while when it proves slow.
 */
export class StatCachePolicy {
  readonly #now: () => number;
  #slowness = 0;
  #distrustedUntilMs = -Infinity;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
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
      this.#note(this.#now() - startedMs);
    }
  }

  #note(ms: number): void {
    if (ms < slowMs) {
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

/** What is at the path itself, links not followed; undefined when nothing is. Rejects as `lstat` does otherwise. */
export async function lstatIfThere(path: string): Promise<Stats | undefined> {
  if (policy.inPlace) return policy.time(() => lstatSync(path, { throwIfNoEntry: false }));
  try {
    return await lstat(path);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** For small folders. Rejects as `readdir` does. */
export async function quickReaddir(path: string): Promise<string[]> {
  return policy.inPlace ? policy.time(() => readdirSync(path)) : readdir(path);
}

/** For small files that were written a moment ago. Rejects as `readFile` does. */
export async function quickReadText(path: string): Promise<string> {
  return policy.inPlace ? policy.time(() => readFileSync(path, 'utf8')) : readFile(path, 'utf8');
}

const openInPool = promisify(open);

/** The descriptor of a folder, for `fsync`; the caller closes it. Rejects as `open` does. */
export async function quickOpenFolder(path: string): Promise<number> {
  return policy.inPlace ? policy.time(() => openSync(path, 'r')) : openInPool(path, 'r');
}

/** What lies in a folder of ours, in no order; nothing when there is none. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  }
}
