import type { Stats } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { enterIfThere, FolderHandle, lstatIfThere } from '@concierge/files';
import { workspaceRules } from './tenant-files.ts';

/** Free space is asked for so often while a command runs. */
const LOOK_EVERY_MS = 250;
/**
 * What was measured longer ago is measured again, whatever the free space is: others may have freed as much as this
 * tenant took.
 */
const MEASURED_MAX_AGE_MS = 30_000;
/** Each level holds a descriptor. */
const DEPTH_MAX = 256;
const NAMES_AT_ONCE = 500;
const BLOCK_BYTES = 512;

export interface WorkspaceUse {
  /** Infinity: folders are nested too deeply to be measured. */
  readonly usedBytes: number;
  readonly maxBytes: number;
}

export interface WorkspaceMeterOptions {
  /** The tenant's folder. */
  readonly root: string;
  readonly maxBytes: () => Promise<number>;
}

interface Measured {
  readonly bytes: number;
  /** Free space of the file system when it was measured. */
  readonly freeBytes: number;
  readonly atMs: number;
}

/**
 * What a tenant's commands and uploads hold on disk. A walk costs milliseconds for each thousand files, so it is made
 * only when the budget may be used up: when the file system has lost as much free space since the last walk as the
 * tenant had left.
 */
export class WorkspaceMeter {
  readonly #options: WorkspaceMeterOptions;
  #last: Measured | undefined;
  #measuring: Promise<Measured> | undefined;

  constructor(options: WorkspaceMeterOptions) {
    this.#options = options;
  }

  async look(): Promise<WorkspaceUse> {
    const maxBytes = await this.#options.maxBytes();
    const last = this.#last;
    const current = last !== undefined && !(await this.#mayBeOver(last, maxBytes)) ? last : await this.#measureOnce();
    return { usedBytes: current.bytes, maxBytes };
  }

  /** Looks on until the budget is used up; undefined when the signal ends it before. */
  async untilOver(signal: AbortSignal): Promise<WorkspaceUse | undefined> {
    while (!signal.aborted) {
      const use = await this.look();
      if (use.usedBytes >= use.maxBytes) return use;
      await wait(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
    return undefined;
  }

  async #mayBeOver({ bytes, freeBytes, atMs }: Measured, maxBytes: number): Promise<boolean> {
    if (bytes >= maxBytes || Date.now() - atMs > MEASURED_MAX_AGE_MS) return true;
    return bytes + Math.max(0, freeBytes - (await this.#freeBytes())) >= maxBytes;
  }

  /** Several commands that look at once share a walk. */
  async #measureOnce(): Promise<Measured> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined));
    return this.#measuring;
  }

  async #measure(): Promise<Measured> {
    // Before the walk: what is written during it is counted by one of the two.
    const [freeBytes, atMs] = [await this.#freeBytes(), Date.now()];
    const bytes = await new Walk().bytesIn(await FolderHandle.open(this.#options.root));
    this.#last = { bytes, freeBytes, atMs };
    return this.#last;
  }

  async #freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#options.root);
    return bavail * bsize;
  }
}

class Walk {
  readonly #linked = new Set<number>();
  #names = 0;

  /** Closes the folder. */
  async bytesIn(folder: FolderHandle, depth = 0): Promise<number> {
    await using held = folder;
    if (depth > DEPTH_MAX) return Infinity;
    let bytes = 0;
    for (const name of await held.names()) {
      // What commands do not see is none of theirs.
      if (depth === 0 && workspaceRules.masked.includes(name)) continue;
      this.#names += 1;
      if (this.#names % NAMES_AT_ONCE === 0) await nextTurn();
      const stats = await lstatIfThere(held.at(name));
      if (stats?.isDirectory() === true) {
        const inner = await enterIfThere(held, name);
        if (inner !== undefined) bytes += await this.bytesIn(inner, depth + 1);
      } else if (stats !== undefined) {
        bytes += this.#countBytes(stats);
      }
    }
    return bytes;
  }

  /**
   * A file with holes counts in full, as they can be filled without its growing; one with several names counts once.
   */
  #countBytes({ size, blocks, nlink, ino }: Stats): number {
    if (nlink > 1) {
      if (this.#linked.has(ino)) return 0;
      this.#linked.add(ino);
    }
    return Math.max(size, blocks * BLOCK_BYTES);
  }
}
