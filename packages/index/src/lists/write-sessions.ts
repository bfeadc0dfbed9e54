import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TurnRecord } from '@concierge/contract';
import { waitForAnswer } from '@concierge/runtime';
import { sql, type CompiledQuery, type Insertable, type Kysely } from 'kysely';
import { z } from 'zod';
import type { IndexBackend } from '../database/backend.ts';
import { pieces, type CompiledQueries } from '../database/compiled-queries.ts';
import { noDetails, sessionDetails, sessionRow, turnRow, usageRows, type SessionBase } from './rows.ts';
import type { IndexTables, SessionDetails, SessionsTable, TurnsTable, UsageTable } from '../database/tables.ts';
import type { SessionPut } from '../types.ts';

type Db = Kysely<IndexTables>;
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
  readonly #db: Db;
  readonly #queries: CompiledQueries;
  readonly #tenantId: string;

  constructor(db: Db, queries: CompiledQueries, tenantId: string) {
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

function upsertSessions(db: Db, rows: SessionRow[]) {
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
function insertTurns(db: Db, rows: TurnRow[]) {
  return db
    .insertInto('turns')
    .values(rows)
    .onConflict((on) => on.columns(['account_id', 'id']).doNothing())
    .returning('id');
}

async function replaceTurn(db: Db, { account_id: tenantId, id, ...turn }: TurnRow) {
  return db
    .updateTable('turns')
    .set(turn)
    .where('account_id', '=', tenantId)
    .where('id', '=', id)
    .where(sql<boolean>`(session_created_at, revision) <= (${turn.session_created_at}, ${turn.revision})`)
    .executeTakeFirstOrThrow();
}

/** A row that was left over, its turn gone, gives way. */
function upsertUsage(db: Db, rows: UsageRow[]) {
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

const FOLD_EVERY_MS = 1000;
/** As long as the end of a turn waits for the index: what a reader waits for while a rebuild holds the lock. */
const FOLD_WAIT_MS = 2000;
/** SQLite answers within the call: some 5 ms in which the process does nothing else. */
const FOLDED_IN_SQLITE = 64;
/** PostgreSQL works elsewhere. All there is: another fold may hold what comes first. */
const FOLDED_IN_POSTGRES = 100_000;

/** Our own rows, checked when they were put. */
const PendingRows = z.object({
  session: z.custom<SessionRows['session']>(),
  /** Missing in what an earlier version has put. */
  details: z.custom<SessionRows['details']>().default(noDetails),
  turns: z.array(z.custom<SessionRows['turns'][number]>()),
});

/**
 * What is put of busy tenants. The first put in a second goes straight into the lists; what follows is written to one
 * table as it is, at a fraction of the cost, and folded into the lists once a second, many rows in one transaction. It
 * is in the database before its `put` resolves: a killed process loses nothing, and every read, in any process, folds
 * first. One for each process.
 */
export class PendingPuts {
  readonly #backend: IndexBackend;
  /** Tenants that were put to in this second; true: not all of it straight into the lists. */
  readonly #tenants = new Map<string, boolean>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  constructor(backend: IndexBackend) {
    this.#backend = backend;
  }

  async put(tenantId: string, puts: readonly SessionPut[]): Promise<void> {
    const { queries } = this.#backend;
    const isBusy = this.#tenants.has(tenantId);
    this.#tenants.set(tenantId, isBusy);
    this.#startTimer();
    const rows = puts.map((put) => toSessionRows(tenantId, put));
    if (isBusy) await this.#backend.writeOne(tenantId, async (db) => insertPending(db, queries, { tenantId, rows }));
    else await this.#backend.write(tenantId, async (db) => new SessionUpserts(db, queries, tenantId).put(rows));
  }

  /** Into the lists with what was put before this call, by any process. */
  async fold(tenantId: string): Promise<void> {
    const limit = this.#backend.dialect === 'sqlite' ? FOLDED_IN_SQLITE : FOLDED_IN_POSTGRES;
    const fold = async (db: Db): Promise<number> => foldPending(db, this.#backend.queries, { tenantId, limit });
    while ((await this.#backend.write(tenantId, fold)) === limit) await nextTurn();
  }

  /** As `fold`, but gives up soon: the index may be behind rather than not answer. */
  async tryFold(tenantId: string): Promise<void> {
    // A time in which this process itself stood still is none that the index took.
    await Promise.race([this.#foldOrLog(tenantId), waitForAnswer(FOLD_WAIT_MS)]);
  }

  forget(tenantId: string): void {
    this.#tenants.delete(tenantId);
  }

  /** What is pending stays so: the next read folds it. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#tenants.clear();
    await this.#round;
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#round = this.#foldAll().finally(() => {
        this.#timer = undefined;
        if (this.#tenants.size > 0) this.#startTimer();
      });
    }, FOLD_EVERY_MS).unref();
  }

  async #foldAll(): Promise<void> {
    for (const tenantId of Array.from(this.#tenants.keys())) {
      if (this.#tenants.get(tenantId) !== true) {
        this.#tenants.delete(tenantId);
        continue;
      }
      this.#tenants.set(tenantId, false);
      // Another process may have deleted it: nothing is made anew for what is no more.
      if (this.#backend.isThere(tenantId)) await this.#foldOrLog(tenantId);
    }
  }

  async #foldOrLog(tenantId: string): Promise<void> {
    await this.fold(tenantId).catch((error: unknown) => {
      this.#backend.log.warn({ tenantId, err: error }, 'what was put into the index is not in its lists yet');
    });
  }
}

/** In one statement, where there are not more than some dozen. */
async function insertPending(
  db: Db,
  queries: CompiledQueries,
  { tenantId, rows }: { readonly tenantId: string; readonly rows: readonly SessionRows[] },
): Promise<void> {
  const pending = rows.map((put) => ({
    account_id: tenantId,
    turn_ids: ` ${put.turns.map(({ turn }) => turn.id).join(' ')} `,
    rows: JSON.stringify(put),
  }));
  for (const query of queries.inserts('put pending', pending, (some) => db.insertInto('pending').values(some)))
    await db.executeQuery(query);
}

/** As a reader asks before it reads; two statements may lie between it and what it reads, as that only grows. */
export async function hasPending(db: Db, queries: CompiledQueries, tenantId: string): Promise<boolean> {
  const query = queries.query('has pending', [tenantId, 1], () =>
    db.selectFrom('pending').select('seq').where('account_id', '=', tenantId).limit(1).compile(),
  );
  return (await db.executeQuery(query)).rows.length > 0;
}

/** A turn of one row of the table. */
export function findPendingTurn(rows: string, turnId: string): SessionRows['turns'][number]['turn'] | undefined {
  return PendingRows.parse(JSON.parse(rows)).turns.find(({ turn }) => turn.id === turnId)?.turn;
}

/**
 * Moves the oldest of what is pending into the lists; in a transaction of the caller's, under the generation that holds
 * then. Returns how many there were.
 */
export async function foldPending(
  db: Db,
  queries: CompiledQueries,
  { tenantId, limit = FOLDED_IN_POSTGRES }: { readonly tenantId: string; readonly limit?: number },
): Promise<number> {
  const { rows } = await sql<{ rows: string }>`delete from pending where account_id = ${tenantId}
    and seq in (select seq from pending where account_id = ${tenantId} order by seq limit ${limit}) returning rows`.execute(db);
  if (rows.length > 0) {
    await new SessionUpserts(db, queries, tenantId).put(rows.map((pending) => PendingRows.parse(JSON.parse(pending.rows))));
  }
  return rows.length;
}
