import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError, type RemovedSession, type Skill, type TurnView, type UsageRow } from '@concierge/contract';
import type { IndexBackend, Work } from './database/backend.ts';
import { PassageIndex } from './passages/passage-index.ts';
import { selectSpent, type Spent, type SpentQuery } from './lists/spent.ts';
import { removeSession } from './lists/remove-session.ts';
import { hasPending, SessionUpserts, toSessionRows, type PendingPuts } from './lists/write-sessions.ts';
import { findNamed, putContact, removeContacts, selectContacts } from './lists/contacts.ts';
import { selectSessions, selectSkills, selectFailedTurns, selectTurn, selectTurns, selectUsage } from './lists/queries.ts';
import { replaceSkills } from './lists/skills.ts';
import type { Page } from './cursor.ts';
import type {
  ContactsQuery,
  FailedTurnsQuery,
  IndexSource,
  IndexedContact,
  IndexedSession,
  IndexedTurn,
  NamedContact,
  SessionPut,
  SessionsQuery,
  TurnsQuery,
  UsageQuery,
} from './types.ts';

export interface TenantIndexOptions {
  readonly tenantId: string;
  readonly backend: IndexBackend;
  readonly pending: PendingPuts;
  /** Without them, an index that was never built is what was put into it. */
  readonly files: TenantIndexFiles | undefined;
}

export interface TenantIndexFiles extends Pick<IndexSource, 'catchUpContacts'> {
  /** Fills the index from the files unless that has been done. */
  readonly build: () => Promise<void>;
}

/** A second one is necessary only when the index is deleted again and again. */
const BUILDS_MAX = 5;

/**
 * One tenant's lists. What is put is idempotent and may come late, twice or out of order.
 *
 * Errors: `overloaded` when the database cannot be reached or stays locked.
 */
export class TenantIndex {
  readonly tenantId: string;
  readonly #backend: IndexBackend;
  readonly #pending: PendingPuts;
  readonly #files: TenantIndexFiles | undefined;
  readonly #puts: BatchedUpserts;
  /** What memory is searched through. */
  readonly passages: PassageIndex;

  constructor(options: TenantIndexOptions) {
    this.tenantId = options.tenantId;
    this.#backend = options.backend;
    this.#pending = options.pending;
    this.#files = options.files;
    this.passages = new PassageIndex({ tenantId: this.tenantId, backend: this.#backend, read: async (work) => this.#read(work) });
    this.#puts = new BatchedUpserts(async (puts) => this.#pending.put(this.tenantId, puts));
  }

  /**
   * Writes the session's row, the turns named by `turnIds` (otherwise all that the file still holds) and their usage.
   * Call it after the session was published: a rebuild relies on finding the file of whatever was put before it began.
   * Calls that come together share a transaction. Any process that reads after it has resolved finds it.
   */
  async putSession(session: SessionPut['session'], options: Pick<SessionPut, 'turnIds'> = {}): Promise<void> {
    await this.#puts.put({ session, turnIds: options.turnIds });
  }

  /** Several in one transaction. */
  async putSessions(puts: readonly SessionPut[]): Promise<void> {
    if (puts.length === 0) return;
    const rows = puts.map((put) => toSessionRows(this.tenantId, put));
    await this.#backend.write(this.tenantId, async (db) => new SessionUpserts(db, this.#backend.queries, this.tenantId).put(rows));
  }

  /** Call it after the session's files are gone and `removed` (`toRemovedSession`) is on disk. */
  async removeSession(removed: RemovedSession): Promise<void> {
    await this.#backend.writeAlone(this.tenantId, async (db) => removeSession(db, this.tenantId, removed));
  }

  /** What was removed is not in the database's files any more; call it rarely: they are written anew. */
  async scrub(): Promise<void> {
    await this.#pending.fold(this.tenantId);
    await this.passages.dropGoneSessions();
    await this.passages.dropUnusedVectors();
    await this.#backend.scrub(this.tenantId);
  }

  /**
   * Newest first.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listSessions(query: SessionsQuery): Promise<Page<IndexedSession>> {
    if (query.words !== undefined) await this.#files?.catchUpContacts();
    return this.#read(async (db) => selectSessions(db, this.tenantId, query));
  }

  /**
   * Those who have written under an id of their own, the last one first.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listContacts(query: ContactsQuery): Promise<Page<IndexedContact>> {
    if (query.words !== undefined) await this.#files?.catchUpContacts();
    return this.#read(async (db) => selectContacts(db, this.tenantId, query));
  }

  /** Senders of whom there is a file, by a part of name or id, in any case. */
  async findContacts(text: string, limit: number): Promise<string[]> {
    await this.#files?.catchUpContacts();
    return this.#readBuilt(async (db) => findNamed(db, this.tenantId, { text, limit }));
  }

  /** Call it after the contact's file is on disk. */
  async putContact(contact: NamedContact): Promise<void> {
    await this.#backend.write(this.tenantId, async (db) => putContact(db, this.tenantId, contact));
  }

  /** By the folders of their files; call it after these are gone. */
  async removeContacts(folders: readonly string[]): Promise<void> {
    await this.#backend.writeAlone(this.tenantId, async (db) => removeContacts(db, this.tenantId, folders));
  }

  /**
   * Ended turns, last accepted first, without their steps. `waiting` and `running` turns are not the index's.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listTurns(query: TurnsQuery): Promise<Page<TurnView>> {
    return this.#read(async (db) => selectTurns(db, this.tenantId, query));
  }

  /**
   * As `listTurns`: failed ones alone, with their records.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listFailedTurns(query: FailedTurnsQuery): Promise<Page<IndexedTurn>> {
    return this.#read(async (db) => selectFailedTurns(db, this.tenantId, query));
  }

  async findTurn(turnId: string): Promise<IndexedTurn | undefined> {
    const select = async (db: Parameters<Work<unknown>>[0]): ReturnType<typeof selectTurn> =>
      selectTurn(db, this.#backend.queries, { tenantId: this.tenantId, turnId });
    const found = await this.#readBuilt(select);
    if (found?.isPending !== true) return found?.turn;
    await this.#pending.tryFold(this.tenantId);
    // Where it could not be folded, the database being locked, it is shown as it was put.
    return (await this.#readBuilt(select))?.turn;
  }

  async replaceSkills(skills: readonly Skill[]): Promise<void> {
    await this.#backend.writeAlone(this.tenantId, async (db) => replaceSkills(db, this.tenantId, skills));
  }

  /** By name. */
  async listSkills(): Promise<Skill[]> {
    return this.#read(async (db) => selectSkills(db, this.tenantId));
  }

  /** Sums by day, agent, channel and model, in that order; removed sessions included. */
  async usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#read(async (db) => selectUsage(db, this.tenantId, query));
  }

  /** What the turns that ended from a moment on, and before another, have used together. */
  async spent(period: SpentQuery): Promise<Spent> {
    return this.#read(async (db) => selectSpent({ db, dialect: this.#backend.dialect, tenantId: this.tenantId }, period));
  }

  /** With what is pending: what this process or another one has put. */
  async #read<Result>(work: Work<Result>): Promise<Result> {
    const { queries } = this.#backend;
    const answer = await this.#readBuilt(async (db) =>
      (await hasPending(db, queries, this.tenantId)) ? undefined : { result: await work(db) },
    );
    if (answer !== undefined) return answer.result;
    await this.#pending.tryFold(this.tenantId);
    return this.#readBuilt(work);
  }

  async #readBuilt<Result>(work: Work<Result>): Promise<Result> {
    if (this.#files === undefined) return this.#backend.read(this.tenantId, work);
    for (let builds = 0; builds <= BUILDS_MAX; builds += 1) {
      const built = await this.#backend.readBuilt(this.tenantId, work);
      if (built !== undefined) return built.result;
      await this.#files.build();
    }
    throw new AppError('overloaded', 'The index gets lost as fast as it is rebuilt', { retryAfterSeconds: 2 });
  }
}

interface Waiting extends PromiseWithResolvers<void> {
  readonly put: SessionPut;
}

const GROUP_MAX = 128;

/**
 * Turns that end at about the same time are written together: those of one turn of the event loop, and those that came
 * while the group before was being written. One transaction costs nearly the same for one of them as for ten.
 */
export class BatchedUpserts {
  readonly #write: (puts: readonly SessionPut[]) => Promise<void>;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(write: (puts: readonly SessionPut[]) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when it is written. */
  async put(put: SessionPut): Promise<void> {
    const waiting = { put, ...Promise.withResolvers<void>() };
    this.#waiting.push(waiting);
    const running = this.#running ?? this.#writeAll();
    this.#running = running;
    return waiting.promise;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      await nextTurn();
      await this.#writeGroup(this.#waiting.splice(0, GROUP_MAX));
    }
    this.#running = undefined;
  }

  /**
   * One that cannot be written does not take the others with it; a database that cannot be reached is not asked for
   * each of them.
   */
  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    try {
      await this.#write(group.map(({ put }) => put));
      for (const { resolve } of group) resolve();
    } catch (error) {
      if (group.length > 1 && !(error instanceof AppError)) for (const one of group) await this.#writeGroup([one]);
      else for (const { reject } of group) reject(error);
    }
  }
}
