import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import {
  tenantOwner,
  type Passage,
  type PassageChanges,
  type PassageIndex,
  type PassageScope,
  type StaleSession,
  type TableDrift,
} from '@concierge/index';
import type { Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import { contactsFolder, type MemoryFiles } from './memory-files.ts';
import { isHashedName, toContactFolder, toNotesOwner } from '../sessions/session-ids.ts';
import type { SessionStore } from '../sessions/session-store.ts';
import { notePassages, sessionPassages } from './passages.ts';
import { NoteWatch, type NoteChanges, type NoteWatchOptions } from './note-watch.ts';
import type { FileEntry } from '../files/list-folder.ts';

/** How long one search reads notes before it answers; the rest waits for the next one. */
const READ_MS = 1000;
const NOTES_AT_ONCE = 64;
/** The limit of one batch: notes are read in parallel, and a note may have 2 MiB. */
const BATCH_MAX_BYTES = 4 * 1024 * 1024;
const SESSIONS_MAX = 200;
/** As a `StatCache`: what was written this shortly before it was read may be written again with the same time. */
const RACY_MS = 1000;
/**
 * Owners whose notes are followed between searches, of all tenants of this process; an inotify watch for each folder.
 */
const FOLLOWED_MAX = 512;
/** New folders are listed once more after they are followed; only one that changes all the time needs more. */
const LISTINGS_MAX = 5;

export interface MemoryReaderOptions {
  readonly tenantId: string;
  /** The tenant's folder. */
  readonly root: string;
  readonly memory: MemoryFiles;
  readonly sessions: SessionStore;
  readonly passages: PassageIndex;
  readonly log: Log;
  readonly noteEvents?: NoteWatchOptions['events'];
  /** A clock that no step of the machine's changes. */
  readonly now?: NoteWatchOptions['now'];
}

/** How much of what may be found has not been read yet. */
export interface Unread {
  readonly notes: number;
  readonly sessions: number;
}

interface FollowedNotes {
  readonly watch: NoteWatch;
  /** Epoch of the index that was brought up to date last; another one has to be filled anew. */
  epoch: string | undefined;
}

/** By reader and owner. */
const followedNotes = new LRUCache<string, FollowedNotes>({
  max: FOLLOWED_MAX,
  dispose: ({ watch }) => {
    watch.close();
  },
});

/**
 * Brings the passages up to date with notes and conversations: only what changed since it was read last is read again,
 * later first.
 */
export class MemoryReader {
  readonly #options: MemoryReaderOptions;
  readonly #id = randomUUID();

  constructor(options: MemoryReaderOptions) {
    this.#options = options;
  }

  /** Reads what changed in the scope, up to a bound; what is left. */
  async refresh(scope: PassageScope, signal: AbortSignal): Promise<Unread> {
    const deadlineMs = this.#nowMs() + READ_MS;
    const notes = scope.kinds.includes('note') ? await this.#refreshNotes(scope.owner, { deadlineMs, signal }) : nothing;
    const sessions = scope.kinds.includes('session') ? await this.#refreshSessions(scope.sessions, signal) : nothing;
    if (notes.hasRemoved || sessions.hasRemoved) await this.#options.passages.dropUnusedVectors();
    return { notes: notes.left, sessions: sessions.left };
  }

  /**
   * Reads everything; what differed. What had not been read yet, or not since it changed, is no difference: a search
   * would have read it. What counts is a source that was thought to be current and was not. With `dryRun` only what was
   * thought so is read, and nothing is changed.
   */
  async readAll(signal: AbortSignal, { dryRun = false }: { readonly dryRun?: boolean } = {}): Promise<TableDrift> {
    const { memory, passages } = this.#options;
    const drift = { added: 0, changed: 0, removed: 0 };
    const put: PutPassages = async (...read) => (dryRun ? passages.compareAll(...read) : passages.putAll(...read));
    const until = { deadlineMs: Infinity, signal, put };
    const owners = new Set([tenantOwner, ...(await memory.contactFolders()), ...(await passages.noteOwners())]);
    for (const owner of owners) {
      const stamps = await passages.noteStamps(owner);
      const entries = await this.#openNotes(owner).list();
      const isCurrent = (entry: FileEntry): boolean => stamps.get(entry.path) === toStamp(entry);
      await this.#readNotes(owner, dryRun ? entries.filter(isCurrent) : entries, {
        ...until,
        onRead: (entry, changes) => {
          if (isCurrent(entry)) add(drift, changes);
        },
      });
      if (!dryRun) await this.#dropGoneNotes(owner, stamps, entries);
    }
    for (const { ref: id, stamp } of await passages.currentSessions()) add(drift, await this.#readSession({ id, stamp }, put));
    if (dryRun) return drift;
    await passages.dropGoneSessions();
    while ((await this.#refreshSessions('all', signal)).left > 0) signal.throwIfAborted();
    await passages.dropUnusedVectors();
    return drift;
  }

  async #refreshNotes(owner: string, until: Until): Promise<Refreshed> {
    const { passages } = this.#options;
    const followed = this.#followed(owner);
    const changes = await followed.watch.take();
    try {
      const epoch = (await passages.state())?.epoch;
      const isKnown = epoch !== undefined && epoch === followed.epoch;
      const refreshed = isKnown && changes !== 'all' ? await this.#refreshSome(owner, changes, until) : undefined;
      if (refreshed !== undefined) return refreshed;
      const all = await this.#refreshAll(owner, followed.watch, until);
      if (epoch === undefined) await passages.putAll({ kind: 'note', owner }, []);
      followed.epoch = (await passages.state())?.epoch;
      if (all.left > 0) followed.watch.expectAll();
      return all;
    } catch (error) {
      followed.watch.expectAll();
      throw error;
    }
  }

  /** Undefined when it takes a look at everything. */
  async #refreshSome(owner: string, changes: Exclude<NoteChanges, 'all'>, until: Until): Promise<Refreshed | undefined> {
    if (changes.size === 0) return nothing;
    const notes = this.#openNotes(owner);
    const stamps = await this.#options.passages.noteStamps(owner, [...changes]);
    const entries: FileEntry[] = [];
    for (const ref of changes) {
      const entry = await notes.stat(ref);
      if (entry?.kind === 'folder') return undefined;
      if (entry !== undefined) entries.push(entry);
    }
    const hasRemoved = await this.#dropGoneNotes(owner, stamps, entries);
    const refreshed = await this.#readChanged(owner, { entries, stamps }, until);
    if (refreshed.left > 0) this.#followed(owner).watch.expectAll();
    return { ...refreshed, hasRemoved: hasRemoved || refreshed.hasRemoved };
  }

  async #refreshAll(owner: string, watch: NoteWatch, until: Until): Promise<Refreshed> {
    const notes = this.#openNotes(owner);
    let entries: FileEntry[] = [];
    for (let listing = 1; listing <= LISTINGS_MAX; listing += 1) {
      entries = await notes.listAll();
      const folders = entries.filter(({ kind }) => kind === 'folder').map(({ path }) => path);
      if (!(await watch.follow(folders))) break;
    }
    const files = entries.filter(({ kind }) => kind === 'file');
    const stamps = await this.#options.passages.noteStamps(owner);
    const hasRemoved = await this.#dropGoneNotes(owner, stamps, files);
    const refreshed = await this.#readChanged(owner, { entries: files, stamps }, until);
    return { ...refreshed, hasRemoved: hasRemoved || refreshed.hasRemoved };
  }

  async #readChanged(owner: string, { entries, stamps }: LookedAt, until: Until): Promise<Refreshed> {
    const changed = entries
      .filter((entry) => stamps.get(entry.path) !== toStamp(entry))
      .toSorted((one, other) => other.mtimeMs - one.mtimeMs);
    let hasRemoved = false;
    const onRead = (_: FileEntry, { removed }: PassageChanges): void => {
      hasRemoved ||= removed > 0;
    };
    const put: PutPassages = async (...read) => this.#options.passages.putAll(...read);
    return { left: await this.#readNotes(owner, changed, { ...until, put, onRead }), hasRemoved };
  }

  async #refreshSessions(named: PassageScope['sessions'], signal: AbortSignal): Promise<Refreshed> {
    let hasRemoved = await this.#options.passages.dropGoneSessions();
    const { sessions, count } = await this.#options.passages.staleSessions(named, SESSIONS_MAX);
    for (const stale of sessions) {
      hasRemoved = (await this.#readSession(stale, async (...read) => this.#options.passages.putAll(...read))).removed > 0 || hasRemoved;
      signal.throwIfAborted();
    }
    return { left: count - sessions.length, hasRemoved };
  }

  async #dropGoneNotes(owner: string, stamps: ReadonlyMap<string, string>, entries: readonly FileEntry[]): Promise<boolean> {
    const there = new Set(entries.map(({ path }) => path));
    const gone = [...stamps.keys()].filter((ref) => !there.has(ref));
    for (const ref of gone) await this.#options.passages.remove({ kind: 'note', owner, ref });
    return gone.length > 0;
  }

  /** In batches, until the time is up; how many are left. */
  async #readNotes(owner: string, entries: readonly FileEntry[], { deadlineMs, signal, put, onRead }: ReadUntil): Promise<number> {
    let read = 0;
    while (read < entries.length && (read === 0 || this.#nowMs() < deadlineMs)) {
      const batch = takeBatch(entries.slice(read, read + NOTES_AT_ONCE));
      // The time before reading: what changes while we read is newer than that.
      const settledMs = Date.now() - RACY_MS;
      const reads = await Promise.all(
        batch.map(async (entry) => {
          const stamp = entry.mtimeMs < settledMs ? toStamp(entry) : `unsettled ${toStamp(entry)}`;
          const text = await this.#readNote(owner, entry.path);
          return { ref: entry.path, stamp, passages: notePassages(text, Math.round(entry.mtimeMs)) };
        }),
      );
      const changes = await put({ kind: 'note', owner }, reads);
      for (const [position, entry] of batch.entries()) onRead(entry, changes[position] ?? { added: 0, removed: 0 });
      read += batch.length;
      await nextTurn();
      signal.throwIfAborted();
    }
    return entries.length - read;
  }

  /** A note that cannot be read (no text, too large, gone again) has no passages until it changes. */
  async #readNote(owner: string, ref: string): Promise<string> {
    try {
      return (await this.#openNotes(owner).get(ref)).text;
    } catch (error) {
      if (error instanceof AppError) return '';
      throw error;
    }
  }

  async #readSession({ id, stamp }: StaleSession, put: PutPassages): Promise<PassageChanges> {
    const { sessions, tenantId, log } = this.#options;
    const putOne = async (owner: string, read: Passage[]): Promise<PassageChanges> => {
      const [changes = noChanges] = await put({ kind: 'session', owner }, [{ ref: id, stamp, passages: read }]);
      return changes;
    };
    const conversation = await sessions.conversation(id).catch((error: unknown) => {
      log.error({ tenantId, sessionId: id, err: error }, 'session cannot be read and is not searched');
      return undefined;
    });
    if (conversation === undefined) return putOne(tenantOwner, []);
    const { session, messages } = conversation;
    const changes = await putOne(toSessionOwner(session), sessionPassages(session, messages));
    await nextTurn();
    return changes;
  }

  #followed(owner: string): FollowedNotes {
    const key = `${this.#id} ${owner}`;
    let followed = followedNotes.get(key);
    if (followed === undefined) {
      const { root, noteEvents: events, now } = this.#options;
      const folder = owner === tenantOwner ? root : join(root, contactsFolder, owner);
      followed = { watch: new NoteWatch({ folder, ...(events && { events }), ...(now && { now }) }), epoch: undefined };
      followedNotes.set(key, followed);
    }
    return followed;
  }

  #nowMs(): number {
    return (this.#options.now ?? (() => performance.now()))();
  }

  #openNotes(owner: string): MemoryFiles {
    const { memory } = this.#options;
    if (owner === tenantOwner) return memory;
    if (!isHashedName(owner)) throw new TypeError(`${JSON.stringify(owner)} is no name of a contact's folder`);
    return memory.forContactFolder(owner);
  }
}

interface Refreshed {
  readonly left: number;
  readonly hasRemoved: boolean;
}

const nothing: Refreshed = { left: 0, hasRemoved: false };

interface Until {
  /** A time of the process's own clock. One batch is read in any case. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** Makes passages those that were read, or only compares them. */
type PutPassages = PassageIndex['putAll'];

const noChanges: PassageChanges = { added: 0, removed: 0 };

interface ReadUntil extends Until {
  readonly put: PutPassages;
  readonly onRead: (entry: FileEntry, changes: PassageChanges) => void;
}

interface LookedAt {
  readonly entries: readonly FileEntry[];
  /** Their known state. */
  readonly stamps: ReadonlyMap<string, string>;
}

function takeBatch(entries: readonly FileEntry[]): readonly FileEntry[] {
  let bytes = 0;
  const over = entries.findIndex(({ size }, position) => (bytes += size) > BATCH_MAX_BYTES && position > 0);
  return over === -1 ? entries : entries.slice(0, over);
}

function toStamp({ size, mtimeMs }: FileEntry): string {
  return `${String(size)}:${String(mtimeMs)}`;
}

function add(drift: { added: number; removed: number }, { added, removed }: PassageChanges): void {
  drift.added += added;
  drift.removed += removed;
}

/** The owner of the conversation. */
function toSessionOwner({ agent, sender, id }: { readonly agent: string; readonly sender: string | null; readonly id: string }): string {
  return agent === 'admin' ? tenantOwner : toContactFolder(toNotesOwner({ sender, sessionId: id }));
}
