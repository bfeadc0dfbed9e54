import { AppError, type RemovedSession, type SessionListItem, type Skill, type TurnView, type UsageRow } from '@concierge/contract';
import type { IndexBackend, Work } from './database/backend.ts';
import { BatchedUpserts } from './lists/batched-upserts.ts';
import { PassageIndex } from './passages/passage-index.ts';
import { SessionUpserts } from './lists/upsert-sessions.ts';
import { selectSessions, selectSkills, selectTurn, selectTurns, selectUsage } from './lists/queries.ts';
import { removeSession } from './lists/remove-session.ts';
import { replaceSkills } from './lists/skills.ts';
import type { Page } from './cursor.ts';
import type { IndexedTurn, SessionPut, SessionsQuery, TurnsQuery, UsageQuery } from './types.ts';

export interface TenantIndexOptions {
  readonly tenantId: string;
  readonly backend: IndexBackend;
  /**
   * Fills the index from the files unless that has been done; without it, an index that was never built is what was put
   * into it.
   */
  readonly build: (() => Promise<void>) | undefined;
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
  readonly #build: (() => Promise<void>) | undefined;
  readonly #puts: BatchedUpserts;
  /** What memory is searched through. */
  readonly passages: PassageIndex;

  constructor(options: TenantIndexOptions) {
    this.tenantId = options.tenantId;
    this.#backend = options.backend;
    this.#build = options.build;
    this.passages = new PassageIndex({ tenantId: this.tenantId, backend: this.#backend, read: async (work) => this.#read(work) });
    this.#puts = new BatchedUpserts(async (puts) => this.putSessions(puts));
  }

  /**
   * Writes the session's row, the turns named by `turnIds` (otherwise all that the file still holds) and their usage.
   * Call it after the session was published: a rebuild relies on finding the file of whatever was put before it began.
   * Calls that come together share a transaction.
   */
  async putSession(session: SessionPut['session'], options: Pick<SessionPut, 'turnIds'> = {}): Promise<void> {
    await this.#puts.put({ session, turnIds: options.turnIds });
  }

  /** Several in one transaction. */
  async putSessions(puts: readonly SessionPut[]): Promise<void> {
    if (puts.length === 0) return;
    await this.#backend.write(this.tenantId, async (db) => new SessionUpserts(db, this.#backend.queries, this.tenantId).put(puts));
  }

  /** Call it after the session's files are gone and `removed` (`removedSessionOf`) is on disk. */
  async removeSession(removed: RemovedSession): Promise<void> {
    await this.#backend.writeAlone(this.tenantId, async (db) => removeSession(db, this.tenantId, removed));
  }

  /**
   * Newest first.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listSessions(query: SessionsQuery): Promise<Page<SessionListItem>> {
    return this.#read(async (db) => selectSessions(db, this.tenantId, query));
  }

  /**
   * Ended turns, last accepted first, without their steps. `waiting` and `running` turns are not the index's.
   * @throws AppError invalid_request for a cursor that is none of this list
   */
  async listTurns(query: TurnsQuery): Promise<Page<TurnView>> {
    return this.#read(async (db) => selectTurns(db, this.tenantId, query));
  }

  async findTurn(turnId: string): Promise<IndexedTurn | undefined> {
    return this.#read(async (db) => selectTurn(db, this.#backend.queries, { tenantId: this.tenantId, turnId }));
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

  async #read<Result>(work: Work<Result>): Promise<Result> {
    if (this.#build === undefined) return this.#backend.read(this.tenantId, work);
    for (let builds = 0; builds <= BUILDS_MAX; builds += 1) {
      const built = await this.#backend.readBuilt(this.tenantId, work);
      if (built !== undefined) return built.result;
      await this.#build();
    }
    throw new AppError('overloaded', 'The index gets lost as fast as it is rebuilt', { retryAfterSeconds: 2 });
  }
}
