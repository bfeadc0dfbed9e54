import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { PassageIndex, SourceName, StaleSession } from '../index-db/passage-index.ts';
import { tenantOwner, type PassageScope } from '../index-db/passage-scope.ts';
import type { TableDrift } from '../index-db/types.ts';
import type { FileEntry } from '../folder-tree.ts';
import type { MemoryFiles } from '../memory-files.ts';
import { isHashedName } from '../session-id.ts';
import type { SessionStore } from '../session-store.ts';
import { sessionOwnerOf } from './memory-scope.ts';
import { notePassages } from './note-passages.ts';
import { sessionPassages } from './session-passages.ts';

/** What one search reads before it answers: some tenths of a second. The rest waits for the next one. */
const NOTES_MAX_BYTES = 8 * 1024 * 1024;
const SESSIONS_MAX = 200;
/** As a `StatCache`: what was written this shortly before it was read may be written again with the same time. */
const RACY_MS = 1000;

export interface MemoryReaderOptions {
  readonly accountId: string;
  readonly memory: MemoryFiles;
  readonly sessions: SessionStore;
  readonly passages: PassageIndex;
  readonly log: Log;
}

/** How much of what may be found has not been read yet. */
export interface Unread {
  readonly notes: number;
  readonly sessions: number;
}

/** Brings the passages up to date with notes and conversations: only what changed since it was read last is read again, later first. */
export class MemoryReader {
  readonly #options: MemoryReaderOptions;

  constructor(options: MemoryReaderOptions) {
    this.#options = options;
  }

  /** Reads what changed in the scope, up to a bound; what is left. */
  async refresh(scope: PassageScope, signal: AbortSignal): Promise<Unread> {
    const notes = scope.kinds.includes('note') ? await this.#refreshNotes(scope.owner, signal) : { left: 0, hasRemoved: false };
    const sessions = scope.kinds.includes('session') ? await this.#refreshSessions(scope.sessions, signal) : { left: 0, hasRemoved: false };
    if (notes.hasRemoved || sessions.hasRemoved) await this.#options.passages.dropUnusedVectors();
    return { notes: notes.left, sessions: sessions.left };
  }

  /**
   * Reads everything; what differed. What had not been read yet, or not since it changed, is no difference: a search would have read it. What counts is a
   * source that was thought to be current and was not.
   */
  async readAll(signal: AbortSignal): Promise<TableDrift> {
    const { memory, passages } = this.#options;
    const drift = { added: 0, changed: 0, removed: 0 };
    const owners = new Set([tenantOwner, ...(await memory.contactFolders()), ...(await passages.noteOwners())]);
    for (const owner of owners) {
      const stamps = await passages.noteStamps(owner);
      for (const entry of await this.#notesOf(owner).list()) {
        const changes = await this.#readNote(owner, entry);
        if (stamps.get(entry.path) === stampOf(entry)) add(drift, changes);
        signal.throwIfAborted();
      }
      await this.#dropGoneNotes(owner, stamps);
    }
    for (const current of await passages.currentSessions()) add(drift, await this.#readSession({ id: current.ref, stamp: current.stamp }));
    await passages.dropGoneSessions();
    while ((await this.#refreshSessions('all', signal)).left > 0) signal.throwIfAborted();
    await passages.dropUnusedVectors();
    return drift;
  }

  async #refreshNotes(owner: string, signal: AbortSignal): Promise<Refreshed> {
    const stamps = await this.#options.passages.noteStamps(owner);
    const entries = await this.#notesOf(owner).list();
    const changed = entries
      .filter((entry) => stamps.get(entry.path) !== stampOf(entry))
      .toSorted((one, other) => other.mtimeMs - one.mtimeMs);
    let hasRemoved = await this.#dropGoneNotes(owner, stamps, entries);
    let bytes = 0;
    let read = 0;
    for (const entry of changed) {
      if (bytes > NOTES_MAX_BYTES) break;
      hasRemoved = (await this.#readNote(owner, entry)).removed > 0 || hasRemoved;
      bytes += entry.size;
      read += 1;
      signal.throwIfAborted();
    }
    return { left: changed.length - read, hasRemoved };
  }

  async #refreshSessions(named: PassageScope['sessions'], signal: AbortSignal): Promise<Refreshed> {
    let hasRemoved = await this.#options.passages.dropGoneSessions();
    const { sessions, count } = await this.#options.passages.staleSessions(named, SESSIONS_MAX);
    for (const stale of sessions) {
      hasRemoved = (await this.#readSession(stale)).removed > 0 || hasRemoved;
      signal.throwIfAborted();
    }
    return { left: count - sessions.length, hasRemoved };
  }

  async #dropGoneNotes(owner: string, stamps: ReadonlyMap<string, string>, entries?: readonly FileEntry[]): Promise<boolean> {
    const there = new Set((entries ?? (await this.#notesOf(owner).list())).map(({ path }) => path));
    const gone = [...stamps.keys()].filter((ref) => !there.has(ref));
    for (const ref of gone) await this.#options.passages.remove({ kind: 'note', owner, ref });
    return gone.length > 0;
  }

  /** A note that cannot be read (no text, too large, gone again) has no passages until it changes. */
  async #readNote(owner: string, entry: FileEntry): Promise<Changes> {
    const source: SourceName = { kind: 'note', owner, ref: entry.path };
    // The time before reading: what changes while we read is newer than that.
    const isSettled = entry.mtimeMs < Date.now() - RACY_MS;
    const text = await this.#notesOf(owner)
      .get(entry.path)
      .then((note) => note.text)
      .catch((error: unknown) => {
        if (error instanceof AppError) return '';
        throw error;
      });
    const stamp = isSettled ? stampOf(entry) : `unsettled ${stampOf(entry)}`;
    const changes = await this.#options.passages.put(source, { stamp, passages: notePassages(text, Math.round(entry.mtimeMs)) });
    await nextTurn();
    return changes;
  }

  async #readSession({ id, stamp }: StaleSession): Promise<Changes> {
    const { sessions, passages, accountId, log } = this.#options;
    const conversation = await sessions.conversation(id).catch((error: unknown) => {
      log.error({ accountId, sessionId: id, err: error }, 'session cannot be read and is not searched');
      return undefined;
    });
    if (conversation === undefined) {
      return passages.put({ kind: 'session', owner: tenantOwner, ref: id }, { stamp, passages: [] });
    }
    const { session, messages } = conversation;
    const source: SourceName = { kind: 'session', owner: sessionOwnerOf(session), ref: id };
    const changes = await passages.put(source, { stamp, passages: sessionPassages(session, messages) });
    await nextTurn();
    return changes;
  }

  #notesOf(owner: string): MemoryFiles {
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

interface Changes {
  readonly added: number;
  readonly removed: number;
}

function stampOf({ size, mtimeMs }: FileEntry): string {
  return `${String(size)}:${String(mtimeMs)}`;
}

function add(drift: { added: number; removed: number }, { added, removed }: Changes): void {
  drift.added += added;
  drift.removed += removed;
}
