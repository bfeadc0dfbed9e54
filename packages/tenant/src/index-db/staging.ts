import { sql, type Insertable, type Kysely } from 'kysely';
import { removalRow, removedUsageRows, sessionRow, turnRow, usageRows, type RowContext } from './rows.ts';
import type { IndexTables, RemovalsTable, RemovedUsageTable, SessionsTable, TurnsTable, UsageTable } from './tables.ts';
import type { IndexSource } from './types.ts';

type Role = 'tenant' | 'key' | 'content' | 'generation';
type Columns<Table> = Readonly<Record<keyof Table, Role>>;

const usageNumbers = { calls: 'content', input_tokens: 'content', cached_input_tokens: 'content', output_tokens: 'content', cost_nano: 'content' } as const;

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
    // Of the session when the row was written, which the files no longer tell: not compared.
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
} as const;

export type StagedName = keyof typeof stagedTables;
export const stagedNames = ['sessions', 'turns', 'usage', 'removals', 'removed_usage'] as const satisfies readonly StagedName[];

export function columnsOf(name: StagedName, ...roles: Role[]): string[] {
  return Object.entries<Role>(stagedTables[name])
    .filter(([, role]) => roles.includes(role))
    .map(([column]) => column);
}

/** The temporary twins, on the connection that made them. */
export type StagingTables = { readonly [Name in StagedName as `staged_${Name}`]: IndexTables[Name] };

/** Rows of one statement; memory holds one statement of each table. */
const STAGED_ROWS = 200;

/** A rebuild ended because the files could not be read; `cause` says why. Told apart from the database's own errors, which may be gone next time. */
export class IndexSourceError extends Error {
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

/** Makes the temporary tables and fills them. They go with the connection. */
export async function stageSource(db: Kysely<IndexTables>, context: RowContext, source: IndexSource): Promise<void> {
  for (const name of stagedNames) {
    const staged = sql.table(`staged_${name}`);
    const key = sql.join(columnsOf(name, 'tenant', 'key').map((column) => sql.ref(column)));
    await sql`create temporary table ${staged} as select * from ${sql.table(name)} where 1 = 0`.execute(db);
    await sql`create unique index ${sql.ref(`staged_${name}_key`)} on ${staged} (${key})`.execute(db);
  }
  const staging = new Staging(db.$extendTables<StagingTables>());
  for await (const { session, turns } of readSource(source.sessions())) {
    await staging.add('sessions', [sessionRow(context, session)]);
    for (const turn of turns) {
      await staging.add('turns', [turnRow(context, session, turn)]);
      await staging.add('usage', usageRows(context, session, turn));
    }
  }
  for await (const removed of readSource(source.removed())) {
    await staging.add('removals', [removalRow(context, removed)]);
    await staging.add('removed_usage', removedUsageRows(context, removed));
  }
  await staging.flush();
}

type StagedRows = { readonly [Name in StagedName]: Insertable<IndexTables[Name]>[] };

class Staging {
  readonly #db: Kysely<IndexTables & StagingTables>;
  #rows: StagedRows = { sessions: [], turns: [], usage: [], removals: [], removed_usage: [] };

  constructor(db: Kysely<IndexTables & StagingTables>) {
    this.#db = db;
  }

  async add<Name extends StagedName>(name: Name, rows: StagedRows[Name]): Promise<void> {
    this.#rows[name].push(...rows);
    if (this.#rows[name].length >= STAGED_ROWS) await this.flush();
  }

  /** A key that comes twice is kept once: a turn in the session file and in its history, the last removal of a session. */
  async flush(): Promise<void> {
    const { sessions, turns, usage, removals, removed_usage: removedUsage } = this.#rows;
    this.#rows = { sessions: [], turns: [], usage: [], removals: [], removed_usage: [] };
    const db = this.#db;
    if (sessions.length > 0) await db.insertInto('staged_sessions').values(sessions).onConflict((on) => on.doNothing()).execute();
    if (turns.length > 0) await db.insertInto('staged_turns').values(turns).onConflict((on) => on.doNothing()).execute();
    if (usage.length > 0) await db.insertInto('staged_usage').values(usage).onConflict((on) => on.doNothing()).execute();
    for (const removal of removals) await this.#stageRemoval(removal);
    if (removedUsage.length > 0) await db.insertInto('staged_removed_usage').values(removedUsage).onConflict((on) => on.doNothing()).execute();
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
