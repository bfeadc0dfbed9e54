import { readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AppError,
  StoredSession,
  sessionOrigins,
  type HistoryLine,
  type RemovedSession,
  type Session,
  type SessionMessage,
  type SessionPage,
  type SessionView,
  type TurnRecord,
} from '@concierge/contract';
import {
  assertNotLater,
  ignoreMissing,
  isSystemError,
  lstatIfThere,
  parseStored,
  readIfThere,
  sweepTemporaries,
  unlessLater,
  type FolderSync,
} from '@concierge/files';
import { toRemovedSession } from '@concierge/index';
import type { Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import {
  cutMessages,
  RemovedSessions,
  mergeMessages,
  mergeTurns,
  SessionHistory,
  toSessionTurn,
  viewSession,
  type PageQuery,
} from './session-history.ts';
import { KeptRevisions } from './kept-revisions.ts';
import { RevisionConflict, type PublicationLog } from './publications.ts';
import { isHashedName } from './session-ids.ts';
import { labelsFolder } from './session-labels.ts';
import type { Revisions } from './session-revisions.ts';
import { repairUnpaired } from './session-repair.ts';

interface CachedSession {
  readonly session: Session;
  /**
   * Birth of the folder the revision was in: a session that was removed and began anew counts its revisions from 1
   * again.
   */
  readonly birth: string;
}

/** What is needed to put a session of any version back. */
const SessionFacts = StoredSession.pick({ id: true, revision: true, createdAt: true });

/** The history has what compaction took out of it. */
function isPruned(message: SessionMessage): boolean {
  return message.role === 'tool' && message.pruned === true;
}

const noHistory = { messages: [], turns: [] };

const defaultMaxBytes = 64 * 1024 * 1024;

/**
 * The sessions this process last read or published, over all tenants, so that a turn need not read what the one before
 * wrote.
 */
export class SessionCache extends LRUCache<string, CachedSession> {
  constructor(maxBytes = defaultMaxBytes) {
    // The size of one is the length of its file: near enough to what it takes in memory.
    super({ maxSize: maxBytes });
  }
}

export interface SessionStoreOptions {
  readonly tenantId: string;
  /** tenants/<id>/sessions */
  readonly folder: string;
  readonly wal?: PublicationLog | undefined;
  readonly folders: FolderSync;
  readonly cache: SessionCache;
  readonly log: Log;
}

/**
 * A tenant's conversations: the truth, of which the index is a copy. Only one of two writers publishes a revision; the
 * other gets `RevisionConflict`. What is returned is the caller's own: its lists may be changed, the messages in them
 * not.
 */
export class SessionStore {
  readonly #tenantId: string;
  readonly #folder: string;
  readonly #revisions: KeptRevisions;
  readonly #history: SessionHistory;
  readonly #removed: RemovedSessions;
  readonly #cache: SessionCache;
  readonly #log: Log;

  constructor({ tenantId, folder, wal, folders, cache, log }: SessionStoreOptions) {
    this.#tenantId = tenantId;
    this.#folder = folder;
    this.#revisions = new KeptRevisions({ folder, wal, folders, log });
    this.#history = new SessionHistory(folder, folders);
    this.#removed = new RemovedSessions(folder, folders);
    this.#cache = cache;
    this.#log = log;
  }

  /**
   * The newest revision; undefined when there is no such session. Costs one directory read when this process wrote it
   * last.
   * @throws LaterVersionError
   */
  async load(id: string): Promise<Session | undefined> {
    if (!isHashedName(id)) return undefined;
    // A revision may be cleared away, or set aside, between the listing and the read: then there is another newest one.
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const cached = this.#cache.get(this.#cacheKey(id));
      const listed = await this.#revisions.list(id, cached !== undefined);
      const newest = listed?.numbers.at(-1);
      if (listed === undefined || newest === undefined) return this.#adoptView(id);
      if (cached?.birth === listed.birth && cached.session.revision === newest) return copySession(cached.session);
      const session = await this.#read(id, newest, listed);
      if (session !== undefined) return session;
    }
    throw new Error(`session ${id} changes faster than it can be read`);
  }

  /**
   * The record of an ended turn, as long as the session's file has it. Most who ask do so of a turn that is not there:
   * a file that does not name it is not parsed.
   */
  async findTurn(id: string, turnId: string): Promise<TurnRecord | undefined> {
    if (!isHashedName(id)) return undefined;
    const newest = (await this.#revisions.list(id))?.numbers.at(-1);
    if (newest !== undefined && this.#cache.get(this.#cacheKey(id))?.session.revision !== newest) {
      const text = await this.#revisions.read(id, newest);
      if (text?.includes(`"${turnId}"`) === false) return undefined;
    }
    const session = newest === undefined ? await this.#adoptView(id) : await this.load(id);
    return session?.turns.find((record) => record.id === turnId);
  }

  /** As `findTurn`, of a turn that compaction has taken out of the session's file; reads all of the history. */
  async findCompactedTurn(id: string, turnId: string): Promise<TurnRecord | undefined> {
    return isHashedName(id) ? this.#history.findTurn(id, turnId) : undefined;
  }

  /**
   * Publishes `next` as the session's newest revision; it and its place are on disk when this returns. A new session
   * has revision 1, any other the loaded one plus 1. After a RevisionConflict load again, and look whether the turn is
   * in there: a publication that others saw and built on is reported as a conflict, too, if its writer was frozen
   * meanwhile.
   * @throws RevisionConflict
   */
  async publish(next: Session): Promise<void> {
    if (!isHashedName(next.id)) throw new Error(`not a session id: ${next.id}`);
    const text = JSON.stringify(toStoredSession(next));
    try {
      const birth = await this.#revisions.publish(next.id, next.revision, text);
      this.#cache.set(this.#cacheKey(next.id), { session: copySession(next), birth }, { size: text.length });
    } catch (error) {
      this.#cache.delete(this.#cacheKey(next.id));
      if (error instanceof RevisionConflict) await this.#forgetLateHistory(next.id);
      throw error;
    }
  }

  /** Restores a publication of the write-ahead log (`Publication`), unless the session was removed since. */
  async restore(text: string): Promise<void> {
    const { id, revision, createdAt } = SessionFacts.parse(JSON.parse(text));
    if (!isHashedName(id) || (await this.#removed.has(id, createdAt))) return;
    await this.#revisions.restore(id, revision, text);
    // Removed in between.
    if ((await this.#removed.has(id, createdAt)) && (await this.#revisions.remove(id))) await this.#removeRest(id);
  }

  /** Call before the session without these messages is published. Repeating lines does no harm. */
  async appendHistory(id: string, lines: readonly HistoryLine[]): Promise<void> {
    await this.#history.append(id, lines);
  }

  /**
   * Rewrites the messages that compaction has put away: what was retracted must be nowhere. Only for the holder of the
   * conversation's lease.
   */
  async rewriteHistory(id: string, change: (message: SessionMessage) => Promise<SessionMessage>): Promise<void> {
    if (isHashedName(id)) await this.#history.rewrite(id, change);
  }

  /**
   * Removes the messages that compaction has put away, where it last did before then; records of turns stay. For a
   * conversation in which no turn waits or runs. False when there were none.
   */
  async removeHistory(id: string, beforeMs: number): Promise<boolean> {
    return isHashedName(id) && (await unlessLater(this.#history.removeMessages(id, beforeMs))) === true;
  }

  /** Removes the revisions before the newest, which are kept for a while otherwise. */
  async dropEarlier(id: string): Promise<void> {
    if (isHashedName(id)) await this.#revisions.dropEarlier(id);
  }

  /** The whole conversation, history first. */
  async view(id: string): Promise<SessionView | undefined> {
    const session = await this.load(id);
    if (session === undefined) return undefined;
    return viewSession(session, (await this.#history.read(id)).messages);
  }

  /**
   * The messages of some turns, the last ones or those before a message, with the records of these turns. The history
   * is read only where the page reaches into it.
   * @throws AppError invalid_request, for a message that is not in the conversation
   */
  async viewPage(id: string, query: PageQuery): Promise<SessionPage | undefined> {
    const session = await this.load(id);
    if (session === undefined) return undefined;
    const recent = cutMessages(session.messages, query);
    const isWhole = recent !== undefined && (recent.before !== null || session.summary === null) && !recent.messages.some(isPruned);
    const { messages: old, turns: oldTurns } = isWhole ? noHistory : await this.#history.read(id);
    const page = isWhole ? recent : cutMessages(mergeMessages(old, session.messages), query);
    if (page === undefined)
      throw new AppError('invalid_request', undefined, { errors: [{ path: 'before', message: 'is no message of this conversation' }] });
    const turns = mergeTurns(oldTurns, session.turns).filter((turn) => page.turnIds.has(turn.id));
    const view = viewSession({ ...session, messages: [...page.messages] }, []);
    return { ...view, turns: turns.map((turn) => toSessionTurn(session, turn)), before: page.before };
  }

  /** The session and all of its messages, history first, as `view` numbers them. */
  async conversation(id: string): Promise<{ readonly session: Session; readonly messages: readonly SessionMessage[] } | undefined> {
    const session = await this.load(id);
    if (session === undefined) return undefined;
    return { session, messages: mergeMessages((await this.#history.read(id)).messages, session.messages) };
  }

  /** Every ended turn of the session, those in the history included. */
  async turnRecords(id: string): Promise<TurnRecord[]> {
    const session = await this.load(id);
    return session === undefined ? [] : this.readSessionTurns(session);
  }

  /** As `turnRecords`, of a session that has been loaded. */
  async readSessionTurns(session: Session): Promise<TurnRecord[]> {
    return mergeTurns((await this.#history.read(session.id)).turns, session.turns);
  }

  /** Removes the conversation; what it had used stays, and is returned. undefined when there is none. */
  async remove(id: string): Promise<RemovedSession | undefined> {
    const session = await this.load(id);
    if (session === undefined) return undefined;
    const usage = toRemovedSession(session, await this.readSessionTurns(session), new Date());
    const removed = { ...usage, turns: session.turns.map((turn) => turn.id) };
    await this.#removed.append(removed);
    await this.#revisions.remove(id);
    await this.#removeRest(id);
    return removed;
  }

  /** What is left of a conversation that was removed, or cannot be read; false when there is nothing. */
  async removeRemains(id: string): Promise<boolean> {
    if (!isHashedName(id)) return false;
    const hadRevisions = await this.#revisions.remove(id);
    const view = this.#revisions.viewPath(id);
    const names = (await readdir(this.#folder).catch(noNames)).filter((name) => name.startsWith(`${id}.`));
    await this.#removeRest(id);
    await ignoreMissing(unlink(`${view}.broken`));
    return hadRevisions || names.length > 0;
  }

  /** Whether the turn was among the newest of a conversation that was removed since; reads all that stayed of such. */
  async wasRemoved(turnId: string): Promise<boolean> {
    for await (const { turns = [] } of this.#removed.read()) if (turns.includes(turnId)) return true;
    return false;
  }

  /** What stayed of removed sessions; the last one of several with the same id and creation time counts. */
  removed(): AsyncIterable<RemovedSession> {
    return this.#removed.read();
  }

  /** Ids of all sessions, in no order. */
  async *ids(): AsyncGenerator<string> {
    const ids = new Set(await this.#revisions.ids());
    yield* ids;
    for (const name of await readdir(this.#folder).catch(noNames)) {
      const id = /^([0-9a-f]{32})\.json$/u.exec(name)?.[1];
      if (id !== undefined && !ids.has(id)) yield id;
    }
  }

  /**
   * Clears away what writers and removers that died in the middle left. Revisions' temporaries go with the next
   * publication.
   */
  async sweep(): Promise<void> {
    await sweepTemporaries(this.#folder);
    await this.#revisions.sweep();
  }

  /** undefined when the file has gone, or had to be set aside. */
  async #read(id: string, revision: number, listed: Revisions): Promise<Session | undefined> {
    const text = await this.#revisions.read(id, revision);
    if (text === undefined) return undefined;
    const parsed = parseStored(StoredSession, text);
    assertNotLater(parsed, this.#revisions.viewPath(id));
    if (parsed.status === 'broken' || parsed.value.revision !== revision || parsed.value.id !== id) {
      const reason = parsed.status === 'broken' ? parsed.reason : 'is of another session or revision';
      this.#log.error({ tenantId: this.#tenantId, sessionId: id, revision, reason }, 'session file is damaged and was set aside');
      await this.#revisions.setAside(id, revision);
      return undefined;
    }
    if (!(await this.#revisions.isViewed(id, revision))) await this.#revisions.repairView(id);
    const session = toSession(parsed.value);
    this.#cache.set(this.#cacheKey(id), { session, birth: listed.birth }, { size: text.length });
    return copySession(session);
  }

  /** A view without revisions: from a backup or another system, or what an interrupted removal left. */
  async #adoptView(id: string): Promise<Session | undefined> {
    const path = this.#revisions.viewPath(id);
    const text = (await lstatIfThere(path)) === undefined ? undefined : await readIfThere(path);
    if (text === undefined) return undefined;
    const parsed = parseStored(StoredSession, text);
    assertNotLater(parsed, path);
    if (parsed.status === 'broken' || parsed.value.id !== id) {
      this.#log.error({ tenantId: this.#tenantId, sessionId: id }, 'session file is damaged and was set aside');
      await ignoreMissing(rename(this.#revisions.viewPath(id), `${this.#revisions.viewPath(id)}.broken`));
      return undefined;
    }
    if (await this.#removed.has(id, parsed.value.createdAt)) {
      await this.#removeRest(id);
      return undefined;
    }
    await this.#revisions.adopt(id, parsed.value.revision);
    return toSession(parsed.value);
  }

  async #removeRest(id: string): Promise<void> {
    this.#cache.delete(this.#cacheKey(id));
    await this.#history.remove(id);
    await ignoreMissing(unlink(this.#revisions.viewPath(id)));
    await ignoreMissing(unlink(join(this.#folder, labelsFolder, `${id}.json`)));
  }

  /**
   * A turn that compacts while its session is removed writes its history in vain; a later session of this id must not
   * get it.
   */
  async #forgetLateHistory(id: string): Promise<void> {
    if ((await this.#revisions.list(id)) === undefined) await this.#history.remove(id);
  }

  #cacheKey(id: string): string {
    return `${this.#tenantId}/${id}`;
  }
}

/**
 * A file from elsewhere, or edited by hand, may hold calls without results, which no model provider takes. One of an
 * earlier version does not contain what began the session: the first of the turns that the file names does, or the
 * channel where that one only added to a conversation.
 */
function toSession({ chatApp, ...session }: StoredSession): Session {
  const { channel, turns, origin = toOrigin(channel, turns[0]?.origin) } = session;
  const address = chatApp === undefined ? {} : { channelAddress: chatApp };
  return { ...session, ...address, origin, messages: [...repairUnpaired(session.messages)] };
}

function toStoredSession({ channelAddress: chatApp, ...session }: Session): StoredSession {
  return { ...session, ...(chatApp !== undefined && { chatApp }) };
}

function toOrigin(channel: Session['channel'], first: TurnRecord['origin'] | undefined): Session['origin'] {
  if (first === undefined || first === 'person' || first === 'retraction') return channel === 'web' ? 'user' : 'channel';
  return sessionOrigins[first];
}

function copySession(session: Session): Session {
  return { ...session, messages: [...session.messages], turns: [...session.turns] };
}

function noNames(error: unknown): string[] {
  if (isSystemError(error, 'ENOENT')) return [];
  throw error;
}
