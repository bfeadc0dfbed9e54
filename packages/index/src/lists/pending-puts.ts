import { setImmediate as nextTurn } from 'node:timers/promises';
import { waitForAnswer } from '@concierge/runtime';
import { sql, type Kysely } from 'kysely';
import { z } from 'zod';
import type { IndexBackend } from '../database/backend.ts';
import type { CompiledQueries } from '../database/compiled-queries.ts';
import type { IndexTables } from '../database/tables.ts';
import type { SessionPut } from '../types.ts';
import { noDetails } from './rows.ts';
import { SessionUpserts, toSessionRows, type SessionRows } from './write-sessions.ts';

type Db = Kysely<IndexTables>;

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
