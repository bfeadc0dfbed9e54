import type { TurnRecord, RemovedSession } from '@concierge/contract';
import { sql, type CompiledQuery, type Insertable, type Kysely } from 'kysely';
import { pieces, type CompiledQueries } from '../database/compiled-queries.ts';
import { sessionDetails, sessionRow, turnRow, usageRows, removalRow, removedUsageRows, type SessionBase } from './rows.ts';
import type { IndexTables, SessionDetails, SessionsTable, TurnsTable, UsageTable } from '../database/tables.ts';
import type { SessionPut } from '../types.ts';
import { dropUnusedVectors } from '../passages/upsert-passages.ts';
import { currentGeneration } from '../database/meta.ts';

type SessionRow = Insertable<SessionsTable>;
type TurnRow = Insertable<TurnsTable>;
type UsageRow = Insertable<UsageTable>;

/** The rows of one session that is put, and of the turns to write. */
export interface SessionRows {
  readonly session: SessionBase;
  /** Apart: an earlier version that folds these rows leaves it out. */
  readonly details: SessionDetails;
  readonly turns: readonly { readonly turn: TurnRow; readonly usage: readonly UsageRow[] }[];
}

interface Rows {
  readonly sessions: SessionRow[];
  readonly turns: TurnRow[];
  readonly usageByTurn: ReadonlyMap<string, readonly UsageRow[]>;
}

/** Of no generation yet: that of the transaction in which they are written. */
export function toSessionRows(tenantId: string, { session, turnIds }: SessionPut): SessionRows {
  const context = { tenantId, generation: 0 };
  const turns = turnsNamed(session.turns, turnIds);
  return {
    session: sessionRow(context, session),
    details: sessionDetails(session, session.turns),
    turns: turns.map((turn) => ({ turn: turnRow(context, session, turn), usage: usageRows(context, session, turn) })),
  };
}

/**
 * Writes sessions with their turns and usage, in one transaction that is the caller's. In any order and any number of
 * times it comes to the same: the newest revision of the newest session of an id stays, and one that has been removed
 * is not brought back.
 */
export class SessionUpserts {
  readonly #db: Kysely<IndexTables>;
  readonly #queries: CompiledQueries;
  readonly #tenantId: string;

  constructor(db: Kysely<IndexTables>, queries: CompiledQueries, tenantId: string) {
    this.#db = db;
    this.#queries = queries;
    this.#tenantId = tenantId;
  }

  async put(puts: readonly SessionRows[]): Promise<void> {
    const generation = await this.#generation();
    const { sessions, turns, usageByTurn } = mergeRows(generation, await this.#withoutRemoved(puts));
    await this.#insert('put sessions', sessions, (rows) => upsertSessions(this.#db, rows));
    const inserted = new Set((await this.#insert('put turns', turns, (rows) => insertTurns(this.#db, rows))).map((row) => row.id));
    const known = turns.filter((turn) => !inserted.has(turn.id));
    const written = known.length === 0 ? [] : await this.#putAgain(known);
    const usage = [...inserted, ...written].flatMap((id) => usageByTurn.get(id) ?? []);
    await this.#insert('put usage', usage, (rows) => upsertUsage(this.#db, rows));
  }

  async #generation(): Promise<number> {
    const query = this.#queries.query('generation', [this.#tenantId, 'generation'], () =>
      this.#db.selectFrom('meta').select('value').where('account_id', '=', this.#tenantId).where('key', '=', 'generation').compile(),
    );
    const { rows } = await this.#db.executeQuery(query);
    return Number(rows[0]?.value ?? 0);
  }

  async #withoutRemoved(puts: readonly SessionRows[]): Promise<readonly SessionRows[]> {
    const removedUntil = new Map<string, number>();
    for (const ids of pieces(puts.map(({ session }) => session.id))) {
      const query = this.#queries.query(`removals ${String(ids.length)}`, [this.#tenantId, ...ids], () =>
        this.#db
          .selectFrom('removals')
          .select(['session_id', 'session_created_at'])
          .where('account_id', '=', this.#tenantId)
          .where('session_id', 'in', ids)
          .compile(),
      );
      for (const row of (await this.#db.executeQuery(query)).rows) removedUntil.set(row.session_id, row.session_created_at);
    }
    if (removedUntil.size === 0) return puts;
    return puts.filter(({ session }) => session.created_at > (removedUntil.get(session.id) ?? -Infinity));
  }

  async #insert<Row extends object, Returned>(
    name: string,
    rows: readonly Row[],
    build: (rows: Row[]) => { compile: () => CompiledQuery<Returned> },
  ) {
    const returned: Returned[] = [];
    for (const query of this.#queries.inserts(name, rows, build)) returned.push(...(await this.#db.executeQuery(query)).rows);
    return returned;
  }

  /**
   * Turns that were put before, each replaced unless it came from a newer session. Returns the ids of those replaced.
   */
  async #putAgain(turns: readonly TurnRow[]): Promise<string[]> {
    const ids: string[] = [];
    for (const turn of turns) {
      const written = await replaceTurn(this.#db, turn);
      if (written.numUpdatedRows === 0n) continue;
      await this.#db.deleteFrom('usage').where('account_id', '=', this.#tenantId).where('turn_id', '=', turn.id).execute();
      ids.push(turn.id);
    }
    return ids;
  }
}

/**
 * One row per key, as one statement may touch it once; in the order of their keys, so that two groups never wait for
 * each other.
 */
function mergeRows(generation: number, puts: readonly SessionRows[]): Rows {
  const sessions = new Map<string, SessionRow>();
  const turns = new Map<string, TurnRow>();
  const usageByTurn = new Map<string, readonly UsageRow[]>();
  const inTime = puts.length < 2 ? puts : puts.toSorted(olderFirst);
  for (const put of inTime) {
    sessions.set(put.session.id, { ...put.session, generation, ...put.details });
    for (const { turn, usage } of put.turns) {
      turns.set(turn.id, { ...turn, generation });
      usageByTurn.set(
        turn.id,
        usage.map((row) => ({ ...row, generation })),
      );
    }
  }
  return { sessions: inOrder(sessions), turns: inOrder(turns), usageByTurn };
}

function olderFirst({ session: one }: SessionRows, { session: other }: SessionRows): number {
  return one.created_at - other.created_at || one.revision - other.revision;
}

function inOrder<Row>(rows: ReadonlyMap<string, Row>): Row[] {
  if (rows.size < 2) return [...rows.values()];
  return [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

/** The turn that has just ended is the last one of a file that may hold thousands. */
function turnsNamed(turns: readonly TurnRecord[], turnIds: readonly string[] | undefined): readonly TurnRecord[] {
  return turnIds === undefined ? turns : turnIds.map((id) => turns.findLast((turn) => turn.id === id)).filter((turn) => turn !== undefined);
}

function upsertSessions(db: Kysely<IndexTables>, rows: SessionRow[]) {
  return db
    .insertInto('sessions')
    .values(rows)
    .onConflict((on) =>
      on
        .columns(['account_id', 'id'])
        .doUpdateSet((eb) => ({
          agent: eb.ref('excluded.agent'),
          channel: eb.ref('excluded.channel'),
          origin: eb.ref('excluded.origin'),
          title: eb.ref('excluded.title'),
          message_count: eb.ref('excluded.message_count'),
          revision: eb.ref('excluded.revision'),
          created_at: eb.ref('excluded.created_at'),
          updated_at: eb.ref('excluded.updated_at'),
          generation: eb.ref('excluded.generation'),
          sender: eb.ref('excluded.sender'),
          last_message: eb.ref('excluded.last_message'),
          last_from: eb.ref('excluded.last_from'),
          has_failed: eb.ref('excluded.has_failed'),
          words: eb.ref('excluded.words'),
        }))
        .where(sql<boolean>`(excluded.created_at, excluded.revision) >= (sessions.created_at, sessions.revision)`),
    );
}

/** Returns those that were not there: nearly always all of them, as a turn ends once. */
function insertTurns(db: Kysely<IndexTables>, rows: TurnRow[]) {
  return db
    .insertInto('turns')
    .values(rows)
    .onConflict((on) => on.columns(['account_id', 'id']).doNothing())
    .returning('id');
}

async function replaceTurn(db: Kysely<IndexTables>, { account_id: tenantId, id, ...turn }: TurnRow) {
  return db
    .updateTable('turns')
    .set(turn)
    .where('account_id', '=', tenantId)
    .where('id', '=', id)
    .where(sql<boolean>`(session_created_at, revision) <= (${turn.session_created_at}, ${turn.revision})`)
    .executeTakeFirstOrThrow();
}

/** A row that was left over, its turn gone, gives way. */
function upsertUsage(db: Kysely<IndexTables>, rows: UsageRow[]) {
  return db
    .insertInto('usage')
    .values(rows)
    .onConflict((on) =>
      on.columns(['account_id', 'day', 'turn_id', 'model']).doUpdateSet((eb) => ({
        session_id: eb.ref('excluded.session_id'),
        session_created_at: eb.ref('excluded.session_created_at'),
        agent: eb.ref('excluded.agent'),
        channel: eb.ref('excluded.channel'),
        calls: eb.ref('excluded.calls'),
        input_tokens: eb.ref('excluded.input_tokens'),
        cached_input_tokens: eb.ref('excluded.cached_input_tokens'),
        output_tokens: eb.ref('excluded.output_tokens'),
        cost_nano: eb.ref('excluded.cost_nano'),
        generation: eb.ref('excluded.generation'),
      })),
    );
}

/**
 * Takes a session and its turns out and keeps what they had used. A session of the same id that began later stays. No
 * index leads from a session to its turns: to keep one up to date would cost every turn, to look through the tenant's
 * turns costs a removal some milliseconds.
 */
export async function removeSession(db: Kysely<IndexTables>, tenantId: string, removed: RemovedSession): Promise<void> {
  const context = { tenantId, generation: await currentGeneration(db, tenantId) };
  const removal = removalRow(context, removed);
  const until = removal.session_created_at;
  await db
    .insertInto('removals')
    .values(removal)
    .onConflict((on) =>
      on
        .columns(['account_id', 'session_id'])
        .doUpdateSet({ session_created_at: until, generation: context.generation })
        .where('removals.session_created_at', '<=', until),
    )
    .execute();
  await db
    .deleteFrom('sessions')
    .where('account_id', '=', tenantId)
    .where('id', '=', removed.id)
    .where('created_at', '<=', until)
    .execute();
  for (const table of ['turns', 'usage'] as const) {
    await db
      .deleteFrom(table)
      .where('account_id', '=', tenantId)
      .where('session_id', '=', removed.id)
      .where('session_created_at', '<=', until)
      .execute();
  }
  // Read anew, should a later session of this id have begun.
  for (const table of ['passage_sources', 'passages'] as const) {
    await db.deleteFrom(table).where('account_id', '=', tenantId).where('kind', '=', 'session').where('ref', '=', removed.id).execute();
  }
  await dropUnusedVectors(db, tenantId);
  for (const usage of pieces(removedUsageRows(context, removed))) {
    await db
      .insertInto('removed_usage')
      .values(usage)
      .onConflict((on) => on.doNothing())
      .execute();
  }
}
