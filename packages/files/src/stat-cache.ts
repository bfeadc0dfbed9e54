import type { Stats } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { lstatIfThere } from './stat-policy.ts';
import { isSystemError } from './system-error.ts';

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
