import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import type { QuestionTerm } from './question.ts';
import type { Passage, PassageKind, PassageScope } from './passage.ts';
import { unitVector, vectorBytes, VectorScan } from './vector-scan.ts';
import type { IndexBackend, Work } from '../database/backend.ts';
import { pieces } from '../database/compiled-queries.ts';
import {
  countHolding,
  selectHolding,
  selectNearest,
  selectPassages,
  selectUnembedded,
  selectWithoutVector,
  selectWords,
  type FoundPassage,
  type PassageRank,
  type PassageWords,
  type UnembeddedPassage,
} from './passage-queries.ts';
import { readMeta } from '../database/meta.ts';
import {
  dropUnusedVectors,
  markPassagesChanged,
  comparePassages,
  putPassages,
  removePassages,
  removeSessionPassages,
  type PassageChanges,
  type SourcePassages,
} from './upsert-passages.ts';

export interface SourceName {
  readonly kind: PassageKind;
  readonly owner: string;
  readonly ref: string;
}

/** Names what is kept of the passages elsewhere. */
export interface PassageState {
  /** Another one after the index was lost, with all that had been read. */
  readonly epoch: string;
  /** Another one after each change. */
  readonly version: string;
}

/** A conversation whose passages are not those of its present revision. */
export interface StaleSession {
  readonly id: string;
  /** What to store with what is read of it now. */
  readonly stamp: string;
}

/** For a row of `sessions as s`: which revision of which session of this id. */
const sessionStamp = sql`cast(s.created_at as text) || ':' || cast(s.revision as text)`;

export interface PassageIndexOptions {
  readonly tenantId: string;
  readonly backend: IndexBackend;
  /** Reads, after a rebuild where the index was lost. */
  readonly read: <Result>(work: Work<Result>) => Promise<Result>;
}

/**
 * One tenant's passages: what memory is searched through. A search fills it from the files; losing it loses nothing.
 */
export class PassageIndex {
  readonly #tenantId: string;
  readonly #backend: IndexBackend;
  readonly #read: PassageIndexOptions['read'];
  readonly #vectors: VectorScan;

  constructor({ tenantId, backend, read }: PassageIndexOptions) {
    this.#tenantId = tenantId;
    this.#backend = backend;
    this.#read = read;
    this.#vectors = new VectorScan(tenantId);
  }

  /** The stamps of an owner's notes, by ref: of those named, or of all. */
  async noteStamps(owner: string, refs?: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#read(async (db) => {
      const all = db
        .selectFrom('passage_sources')
        .select(['ref', 'stamp'])
        .where('account_id', '=', this.#tenantId)
        .where('kind', '=', 'note')
        .where('owner', '=', owner);
      return (refs === undefined ? all : all.where('ref', 'in', [...refs])).execute();
    });
    return new Map(rows.map(({ ref, stamp }) => [ref, stamp]));
  }

  /** All owners whose notes have been read. */
  async noteOwners(): Promise<string[]> {
    const rows = await this.#read(async (db) =>
      db
        .selectFrom('passage_sources')
        .select('owner')
        .distinct()
        .where('account_id', '=', this.#tenantId)
        .where('kind', '=', 'note')
        .execute(),
    );
    return rows.map(({ owner }) => owner);
  }

  /** Conversations to be read (again), later first, and how many there are; of those named, or of all. */
  async staleSessions(sessions: PassageScope['sessions'], limit: number): Promise<{ sessions: StaleSession[]; count: number }> {
    if (sessions !== 'all' && sessions.length === 0) return { sessions: [], count: 0 };
    const named = sessions === 'all' ? sql`true` : sql`s.id in (${sql.join([...sessions])})`;
    const stale = sql`sessions as s where s.account_id = ${this.#tenantId} and ${named} and not exists (select 1 from passage_sources as p
      where p.account_id = s.account_id and p.kind = 'session' and p.ref = s.id and p.stamp = ${sessionStamp})`;
    return this.#read(async (db) => {
      const { rows } =
        await sql<StaleSession>`select s.id, ${sessionStamp} as stamp from ${stale} order by s.updated_at desc, s.id limit ${limit}`.execute(
          db,
        );
      if (rows.length < limit) return { sessions: rows, count: rows.length };
      const counted = await sql<{ count: number }>`select cast(count(*) as bigint) as count from ${stale}`.execute(db);
      return { sessions: rows, count: counted.rows[0]?.count ?? rows.length };
    });
  }

  /** Conversations that have been read and are current, by id. */
  async currentSessions(): Promise<{ ref: string; stamp: string }[]> {
    return this.#read(async (db) => {
      const { rows } = await sql<{ ref: string; stamp: string }>`select p.ref, p.stamp from passage_sources as p
        where p.account_id = ${this.#tenantId} and p.kind = 'session' and exists (select 1 from sessions as s
          where s.account_id = ${this.#tenantId} and s.id = p.ref and p.stamp = ${sessionStamp}) order by p.ref`.execute(db);
      return rows;
    });
  }

  /** Takes conversations out that are no more; whether there were any. */
  async dropGoneSessions(): Promise<boolean> {
    const gone = await this.#read(async (db) =>
      db
        .selectFrom('passage_sources')
        .select(['owner', 'ref'])
        .where('account_id', '=', this.#tenantId)
        .where('kind', '=', 'session')
        .where(sql<boolean>`not exists (select 1 from sessions as s where s.account_id = ${this.#tenantId} and s.id = passage_sources.ref)`)
        .execute(),
    );
    for (const { owner, ref } of gone) await this.remove({ kind: 'session', owner, ref });
    return gone.length > 0;
  }

  /** Makes the passages of a source those given. */
  async put(source: SourceName, read: { readonly stamp: string; readonly passages: readonly Passage[] }): Promise<PassageChanges> {
    const [changes = { added: 0, removed: 0 }] = await this.putAll(source, [{ ref: source.ref, ...read }]);
    return changes;
  }

  /**
   * Puts passages of several sources of one kind and owner in one transaction; returns what changed, in the same order.
   */
  async putAll({ kind, owner }: Omit<SourceName, 'ref'>, reads: readonly SourcePassages[]): Promise<PassageChanges[]> {
    return this.#change(async (db) => putPassages(db, { tenantId: this.#tenantId, kind, owner }, reads));
  }

  /** What `putAll` would change. */
  async compareAll({ kind, owner }: Omit<SourceName, 'ref'>, reads: readonly SourcePassages[]): Promise<PassageChanges[]> {
    return this.#read(async (db) => comparePassages(db, { tenantId: this.#tenantId, kind, owner }, reads));
  }

  async remove(source: SourceName): Promise<void> {
    await this.#change(async (db) => removePassages(db, { tenantId: this.#tenantId, ...source }));
  }

  /** Takes a conversation out, of which something is no more: the next search reads what is left. */
  async dropSession(sessionId: string): Promise<void> {
    await this.#change(async (db) => removeSessionPassages(db, this.#tenantId, sessionId));
  }

  /** undefined as long as nothing has been read. */
  async state(): Promise<PassageState | undefined> {
    const value = await this.#read(async (db) => readMeta(db, this.#tenantId, 'passages'));
    const [epoch, version] = value?.split(' ') ?? [];
    return epoch === undefined || version === undefined ? undefined : { epoch, version };
  }

  /** Removes vectors of texts that no passage has any more. */
  async dropUnusedVectors(): Promise<void> {
    await this.#backend.write(this.#tenantId, async (db) => dropUnusedVectors(db, this.#tenantId));
  }

  async countHolding(scope: PassageScope, question: readonly QuestionTerm[]): Promise<{ size: number; holding: number[] }> {
    return this.#read(async (db) => countHolding({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, question));
  }

  async holding(scope: PassageScope, asked: { terms: readonly QuestionTerm[]; limit: number }): Promise<PassageWords[]> {
    return this.#read(async (db) => selectHolding({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, asked));
  }

  async words(scope: PassageScope, limit: number): Promise<Set<string>> {
    return this.#read(async (db) => selectWords({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, limit));
  }

  /** The passages among the ids that are in the scope, in no order. */
  async passages(scope: PassageScope, ids: readonly number[]): Promise<FoundPassage[]> {
    return this.#read(async (db) => selectPassages({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, ids));
  }

  /** The ids that have no vector yet. */
  async withoutVector(scope: PassageScope, asked: { model: string; ids: readonly number[] }): Promise<number[]> {
    return this.#read(async (db) => selectWithoutVector({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, asked));
  }

  async unembedded(
    scope: PassageScope,
    asked: { model: string; limit: number },
  ): Promise<{ passages: UnembeddedPassage[]; count: number }> {
    return this.#read(async (db) => selectUnembedded({ db, dialect: this.#backend.dialect, tenantId: this.#tenantId }, scope, asked));
  }

  /** Keeps vectors of one model; those of another one are of no more use. */
  async putVectors(model: string, vectors: readonly { readonly hash: string; readonly vector: Float32Array }[]): Promise<void> {
    const rows = vectors.map(({ hash, vector }) => ({ account_id: this.#tenantId, model, hash, vector: vectorBytes(unitVector(vector)) }));
    await this.#backend.write(this.#tenantId, async (db) => {
      await db.deleteFrom('passage_vectors').where('account_id', '=', this.#tenantId).where('model', '<>', model).execute();
      for (const some of pieces(rows)) {
        await db
          .insertInto('passage_vectors')
          .values(some)
          .onConflict((on) => on.doNothing())
          .execute();
      }
    });
    await nextTurn();
  }

  /** Passages whose vectors point in nearly the same direction, nearest first. */
  async nearest(
    scope: PassageScope,
    asked: { readonly model: string; readonly vector: Float32Array; readonly limit: number },
  ): Promise<(PassageRank & { readonly similarity: number })[]> {
    const unit = unitVector(asked.vector);
    return this.#backend.readVectors(this.#tenantId, async (db, canCompare) => {
      const queries = { db, dialect: this.#backend.dialect, tenantId: this.#tenantId };
      if (canCompare) return selectNearest(queries, scope, { ...asked, vector: vectorBytes(unit) });
      return this.#vectors.nearest(queries, scope, { ...asked, vector: unit });
    });
  }

  async #change<Result>(work: Work<Result>): Promise<Result> {
    return this.#backend.write(this.#tenantId, async (db) => {
      await markPassagesChanged(db, this.#tenantId);
      return work(db);
    });
  }
}
