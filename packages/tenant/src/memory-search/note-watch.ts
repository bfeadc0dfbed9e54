import { watch, type FSWatcher } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isSystemError, lstatIfThere, nameProblem } from '@concierge/files';

/** Everything may be another; or only these notes may. */
export type NoteChanges = 'all' | ReadonlySet<string>;

export interface NoteWatchOptions {
  /** Holds MEMORY.md and memory/. */
  readonly folder: string;
  /** `never`: as where the kernel does not report what others change. */
  readonly events?: 'where they can be trusted' | 'never';
  /** A clock that no step of the machine's changes. */
  readonly now?: () => number;
}

/** Without events, an edit is seen at the latest this long after it was made. */
const LOOK_EVERY_MS = 4000;
/** With events: what they do not report (a write through a mapping, a queue that ran over) is seen after this long. */
const LOOK_ALL_THE_SAME_MS = 600_000;
const FOLDERS_MAX = 64;
/** More are no less work one by one than all together. */
const NAMES_MAX = 500;
/**
 * Between two searches: a command that writes without end must not keep the event loop busy. Then everything is looked
 * at instead.
 */
const EVENTS_MAX = 2000;
const MAIN = 'MEMORY.md';
const NOTES = 'memory';
const TOP = '';
/** The signature of a folder that is not there (yet). */
const NONE = '';

/**
 * File systems whose every change this machine's kernel makes, and reports: ext2–4, XFS, Btrfs, tmpfs, overlayfs, ZFS,
 * F2FS, bcachefs.
 */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010, 0xca451a4e,
]);

interface Followed {
  readonly identity: string;
  /** Undefined where events are not used. */
  readonly watcher: FSWatcher | undefined;
}

/**
 * Knows which notes may have changed since it was asked last, without looking at each of them. On a local file system
 * the kernel reports every process's changes; elsewhere (NFS, CIFS, FUSE, …) it does not know what another machine
 * changes, and everything is to be looked at again every few seconds. The folders themselves are looked at each time:
 * one that was replaced reports nothing any more.
 */
export class NoteWatch {
  readonly #options: NoteWatchOptions;
  readonly #now: () => number;
  readonly #followed = new Map<string, Followed>();
  readonly #names = new Set<string>();
  #usesEvents: boolean | undefined;
  #isAll = true;
  #events = 0;
  #lookedMs = -Infinity;

  constructor(options: NoteWatchOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * What may have changed since the last call. After `all`, the caller calls `follow` with each list of folders that it
   * finds.
   */
  async take(): Promise<NoteChanges> {
    // One whole turn of the event loop: what was changed before now has been reported.
    if (this.#usesEvents === true) {
      await nextTurn();
      await nextTurn();
    }
    const isDue = this.#now() - this.#lookedMs >= (this.#usesEvents === true ? LOOK_ALL_THE_SAME_MS : LOOK_EVERY_MS);
    const isAll = this.#isAll || isDue || this.#names.size > NAMES_MAX || (await this.#isAnyReplaced());
    const names = new Set(this.#names);
    this.#names.clear();
    this.#events = 0;
    this.#isAll = false;
    if (!isAll) return names;
    this.#lookedMs = this.#now();
    return 'all';
  }

  /** The next `take` answers `all`. */
  expectAll(): void {
    this.#isAll = true;
  }

  /**
   * Follows these folders of notes from now on, by path, and no others. True when some are new: what was in them was
   * perhaps changed after it was listed, and before they were followed.
   */
  async follow(paths: readonly string[]): Promise<boolean> {
    const { folder, events } = this.#options;
    this.#usesEvents ??= events === 'never' ? false : await tellsOfChanges(folder);
    const wanted = [...new Set([TOP, NOTES, ...paths])];
    for (const path of this.#followed.keys()) if (!wanted.includes(path)) this.#leave(path);
    if (this.#usesEvents && wanted.length > FOLDERS_MAX) this.#giveEventsUp();
    let hasNew = false;
    for (const path of wanted) {
      const identity = await this.#readIdentity(path);
      if (this.#followed.get(path)?.identity === identity) continue;
      this.#leave(path);
      this.#followed.set(path, { identity, watcher: identity === NONE ? undefined : this.#watch(path) });
      hasNew = identity !== NONE || hasNew;
    }
    return hasNew;
  }

  /** Follows nothing any more; the next `take` answers `all`. */
  close(): void {
    for (const path of this.#followed.keys()) this.#leave(path);
    this.#isAll = true;
  }

  #watch(path: string): FSWatcher | undefined {
    if (this.#usesEvents !== true) return undefined;
    try {
      const watcher = watch(join(this.#options.folder, path), { persistent: false }, (_event, name) => {
        this.#note(path, name);
      });
      return watcher.on('error', () => {
        this.#giveEventsUp();
      });
    } catch {
      // The kernel's number of watches is used up, or the folder is gone.
      this.#giveEventsUp();
      return undefined;
    }
  }

  #note(folder: string, name: string | null): void {
    this.#events += 1;
    if (this.#events > EVENTS_MAX) this.close();
    else if (name === null) this.#isAll = true;
    else if (folder === TOP) {
      if (name === MAIN) this.#names.add(MAIN);
      if (name === NOTES) this.#isAll = true;
    } else if (nameProblem(name) === undefined) {
      const path = `${folder}/${name}`;
      if (this.#followed.has(path)) this.#isAll = true;
      else if (this.#names.size <= NAMES_MAX) this.#names.add(path);
    }
  }

  #giveEventsUp(): void {
    this.close();
    this.#usesEvents = false;
  }

  #leave(path: string): void {
    this.#followed.get(path)?.watcher?.close();
    this.#followed.delete(path);
  }

  async #isAnyReplaced(): Promise<boolean> {
    for (const [path, { identity }] of this.#followed) if ((await this.#readIdentity(path)) !== identity) return true;
    return false;
  }

  /** Without events, a folder in which something was made or removed is another one, too. */
  async #readIdentity(path: string): Promise<string> {
    const stats = await lstatIfThere(join(this.#options.folder, path));
    if (stats?.isDirectory() !== true) return NONE;
    return [stats.dev, stats.ino, this.#usesEvents === true || path === TOP ? '' : stats.mtimeMs].join(':');
  }
}

/** Undefined while the folder is not there. */
async function tellsOfChanges(folder: string): Promise<boolean | undefined> {
  try {
    return process.platform === 'linux' && localTypes.has((await statfs(folder)).type);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}
