import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql, type CompiledQuery, type Insertable, type Kysely } from 'kysely';
import type { CompiledQueries } from '../database/compiled-queries.ts';
import {
  contactRow,
  removalRow,
  removedUsageRows,
  sessionDetails,
  sessionRow,
  turnRow,
  usageRows,
  type RowContext,
} from '../lists/rows.ts';
import type {
  ContactsTable,
  IndexTables,
  RemovalsTable,
  RemovedUsageTable,
  SessionsTable,
  TurnsTable,
  UsageTable,
} from '../database/tables.ts';
import type { IndexSource } from '../types.ts';

type Role = 'tenant' | 'key' | 'content' | 'generation';
type Columns<Table> = Readonly<Record<keyof Table, Role>>;

const usageNumbers = {
  calls: 'content',
  input_tokens: 'content',
  cached_input_tokens: 'content',
  output_tokens: 'content',
  cost_nano: 'content',
} as const;

/** The tables that are filled from files one row at a time, and what each column is to a comparison. */
export const stagedTables = {
  sessions: {
    account_id: 'tenant',
    id: 'key',
    agent: 'content',
    channel: 'content',
    title: 'content',
    message_count: 'content',
    revision: 'content',
    created_at: 'content',
    updated_at: 'content',
    origin: 'content',
    sender: 'content',
    last_message: 'content',
    last_from: 'content',
    has_failed: 'content',
    words: 'content',
    generation: 'generation',
  } satisfies Columns<SessionsTable>,
  turns: {
    account_id: 'tenant',
    id: 'key',
    session_id: 'content',
    session_created_at: 'content',
    agent: 'content',
    channel: 'content',
    status: 'content',
    accepted_at: 'content',
    // State of the session when the row was written, which the files no longer contain: not compared.
    revision: 'generation',
    generation: 'generation',
    record: 'content',
  } satisfies Columns<TurnsTable>,
  usage: {
    account_id: 'tenant',
    turn_id: 'key',
    session_id: 'content',
    session_created_at: 'content',
    day: 'key',
    agent: 'content',
    channel: 'content',
    model: 'key',
    ...usageNumbers,
    generation: 'generation',
  } satisfies Columns<UsageTable>,
  removals: {
    account_id: 'tenant',
    session_id: 'key',
    session_created_at: 'content',
    generation: 'generation',
  } satisfies Columns<RemovalsTable>,
  removed_usage: {
    account_id: 'tenant',
    session_id: 'key',
    session_created_at: 'key',
    day: 'key',
    agent: 'key',
    channel: 'key',
    model: 'key',
    turns: 'content',
    ...usageNumbers,
    generation: 'generation',
  } satisfies Columns<RemovedUsageTable>,
  contacts: {
    account_id: 'tenant',
    folder: 'key',
    sender: 'content',
    words: 'content',
    generation: 'generation',
  } satisfies Columns<ContactsTable>,
} as const;

export type StagedName = keyof typeof stagedTables;
export const stagedNames = ['sessions', 'turns', 'usage', 'removals', 'removed_usage', 'contacts'] as const satisfies readonly StagedName[];

export function listColumns(name: StagedName, ...roles: Role[]): string[] {
  return Object.entries<Role>(stagedTables[name])
    .filter(([, role]) => roles.includes(role))
    .map(([column]) => column);
}

/** The temporary duplicates, on the connection that made them. */
export type StagingTables = { readonly [Name in StagedName as `staged_${Name}`]: IndexTables[Name] };

/** Rows that are held before they are written. */
const BUFFERED_ROWS = 256;

/**
 * A rebuild ended because the files could not be read; `cause` has the reason. Distinct from the database's own errors,
 * which may be gone next time.
 */
class IndexSourceError extends Error {
  override readonly name = 'IndexSourceError';
}

/** @throws IndexSourceError for whatever the source throws */
export async function* readSource<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    throw new IndexSourceError('the files of the tenant cannot be read', { cause: error });
  }
}

export interface StagingConnection {
  readonly db: Kysely<IndexTables>;
  readonly queries: CompiledQueries;
}

/** Makes the temporary tables and fills them. They go with the connection. */
export async function stageSource(connection: StagingConnection, context: RowContext, source: IndexSource): Promise<void> {
  const { db, queries } = connection;
  for (const name of stagedNames) {
    const staged = sql.table(`staged_${name}`);
    const key = sql.join(listColumns(name, 'tenant', 'key').map((column) => sql.ref(column)));
    await sql`create temporary table ${staged} as select * from ${sql.table(name)} where 1 = 0`.execute(db);
    await sql`create unique index ${sql.ref(`staged_${name}_key`)} on ${staged} (${key})`.execute(db);
  }
  const staging = new Staging(db.$extendTables<StagingTables>(), queries);
  for await (const { session, turns } of readSource(source.sessions())) {
    staging.rows.sessions.push({ ...sessionRow(context, session), ...sessionDetails(session, turns) });
    for (const turn of turns) {
      staging.rows.turns.push(turnRow(context, session, turn));
      staging.rows.usage.push(...usageRows(context, session, turn));
    }
    if (staging.isFull) await staging.flush();
  }
  for await (const removed of readSource(source.removed())) {
    staging.rows.removals.push(removalRow(context, removed));
    staging.rows.removed_usage.push(...removedUsageRows(context, removed));
    if (staging.isFull) await staging.flush();
  }
  for await (const contact of readSource(source.contacts())) {
    staging.rows.contacts.push(contactRow(context, contact));
    if (staging.isFull) await staging.flush();
  }
  await staging.flush();
}

type StagedRows = { readonly [Name in StagedName]: Insertable<IndexTables[Name]>[] };

class Staging {
  readonly rows: StagedRows = { sessions: [], turns: [], usage: [], removals: [], removed_usage: [], contacts: [] };
  readonly #db: Kysely<IndexTables & StagingTables>;
  readonly #queries: CompiledQueries;

  constructor(db: Kysely<IndexTables & StagingTables>, queries: CompiledQueries) {
    this.#db = db;
    this.#queries = queries;
  }

  get isFull(): boolean {
    return stagedNames.some((name) => this.rows[name].length >= BUFFERED_ROWS);
  }

  /**
   * A key that comes twice is kept once: a turn in the session file and in its history, the last removal of a session
   * (one that was cut off, or of a session that was restored, has another behind it, with what was used since).
   */
  async flush(): Promise<void> {
    const { rows } = this;
    const db = this.#db;
    await this.#insert('staged sessions', rows.sessions, (some) =>
      db
        .insertInto('staged_sessions')
        .values(some)
        .onConflict((on) => on.doNothing()),
    );
    await this.#insert('staged turns', rows.turns, (some) =>
      db
        .insertInto('staged_turns')
        .values(some)
        .onConflict((on) => on.doNothing()),
    );
    await this.#insert('staged usage', rows.usage, (some) =>
      db
        .insertInto('staged_usage')
        .values(some)
        .onConflict((on) => on.doNothing()),
    );
    for (const removal of rows.removals.splice(0)) await this.#stageRemoval(removal);
    await this.#insert('staged removed usage', takeLast(rows.removed_usage), (some) =>
      db
        .insertInto('staged_removed_usage')
        .values(some)
        .onConflict((on) =>
          on.columns(['account_id', 'session_id', 'session_created_at', 'day', 'agent', 'channel', 'model']).doUpdateSet((eb) => ({
            turns: eb.ref('excluded.turns'),
            calls: eb.ref('excluded.calls'),
            input_tokens: eb.ref('excluded.input_tokens'),
            cached_input_tokens: eb.ref('excluded.cached_input_tokens'),
            output_tokens: eb.ref('excluded.output_tokens'),
            cost_nano: eb.ref('excluded.cost_nano'),
          })),
        ),
    );
    await this.#insert('staged contacts', rows.contacts, (some) =>
      db
        .insertInto('staged_contacts')
        .values(some)
        .onConflict((on) => on.doNothing()),
    );
    // SQLite answers within the call: without this, a source that never waits for the disk would block the event loop.
    await nextTurn();
  }

  async #insert<Row extends object>(name: string, rows: Row[], build: (rows: Row[]) => { compile: () => CompiledQuery }): Promise<void> {
    for (const query of this.#queries.inserts(name, rows.splice(0), build)) await this.#db.executeQuery(query);
  }

  async #stageRemoval(row: Insertable<RemovalsTable>): Promise<void> {
    await this.#db
      .insertInto('staged_removals')
      .values(row)
      .onConflict((on) =>
        on
          .columns(['account_id', 'session_id'])
          .doUpdateSet({ session_created_at: row.session_created_at })
          .where('staged_removals.session_created_at', '<', row.session_created_at),
      )
      .execute();
  }
}

/** Empties the list. One statement may touch a key once: of equal ones the last row. */
function takeLast(rows: Insertable<RemovedUsageTable>[]): Insertable<RemovedUsageTable>[] {
  const key = listColumns('removed_usage', 'key');
  const last = new Map<string, Insertable<RemovedUsageTable>>();
  for (const row of rows.splice(0)) {
    const values = new Map<string, unknown>(Object.entries(row));
    last.set(JSON.stringify(key.map((column) => values.get(column))), row);
  }
  return [...last.values()];
}
