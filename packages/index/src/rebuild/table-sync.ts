import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql, type Kysely, type RawBuilder } from 'kysely';
import type { RowContext } from '../lists/rows.ts';
import { listColumns, type StagedName } from './staging.ts';
import type { IndexDialect, IndexTables } from '../database/tables.ts';
import type { TableDrift } from '../types.ts';

/**
 * Rows of one statement in SQLite, which answers within the call: some 30 ms in which the process does nothing else.
 */
const SLICE_ROWS = 1000;

/**
 * Makes tables of a tenant equal to their staged duplicates, but for rows that were written since the rebuild began;
 * only what differs is written.
 */
export class TableSync {
  readonly #db: Kysely<IndexTables>;
  readonly #dialect: IndexDialect;
  readonly #context: RowContext;

  constructor(db: Kysely<IndexTables>, dialect: IndexDialect, context: RowContext) {
    this.#db = db;
    this.#dialect = dialect;
    this.#context = context;
  }

  async replace(name: StagedName): Promise<TableDrift> {
    const drift = { added: 0, changed: 0, removed: await this.#deleteOthers(name) };
    for (const slice of await this.#slices(name)) {
      const added = await this.#countAbsent(name, slice);
      const written = await this.#write(name, slice);
      drift.added += added;
      drift.changed += written - added;
      await nextTurn();
    }
    return drift;
  }

  async #deleteOthers(name: StagedName): Promise<number> {
    const { tenantId, generation } = this.#context;
    const deleted = await sql`delete from ${sql.table(name)} where account_id = ${tenantId} and generation < ${generation}
      and not exists (select 1 from ${stagedDuplicate(name)} where ${sameKey(name)})`.execute(this.#db);
    return Number(deleted.numAffectedRows ?? 0);
  }

  async #countAbsent(name: StagedName, slice: RawBuilder<unknown>): Promise<number> {
    const counted = await sql<{ absent: number }>`select cast(count(*) as bigint) as absent from ${stagedDuplicate(name)}
      where ${slice} and not exists (select 1 from ${sql.table(name)} where ${sameKey(name)})`.execute(this.#db);
    return counted.rows[0]?.absent ?? 0;
  }

  async #write(name: StagedName, slice: RawBuilder<unknown>): Promise<number> {
    const all = refs(listColumns(name, 'tenant', 'key', 'content', 'generation'));
    const taken = listColumns(name, 'content', 'generation').map((column) => sql`${sql.ref(column)} = ${sql.ref(`excluded.${column}`)}`);
    const differing = listColumns(name, 'content').map(
      (column) => sql`${sql.ref(`${name}.${column}`)} is distinct from ${sql.ref(`excluded.${column}`)}`,
    );
    const key = refs(listColumns(name, 'tenant', 'key'));
    // In the order of keys, as `SessionUpserts` writes: two that lock rows in another order would wait for each other.
    const written =
      await sql`insert into ${sql.table(name)} (${all}) select ${all} from ${stagedDuplicate(name)} where ${slice} order by ${key}
      on conflict (${key}) do update set ${sql.join(taken)}
      where ${sql.ref(`${name}.generation`)} < ${this.#context.generation} and (${sql.join(differing, sql` or `)})`.execute(this.#db);
    return Number(written.numAffectedRows ?? 0);
  }

  /** Conditions that part the staged rows. PostgreSQL works elsewhere and takes them all at once. */
  async #slices(name: StagedName): Promise<RawBuilder<unknown>[]> {
    if (this.#dialect === 'postgres') return [sql`true`];
    const { rows } = await sql<{ last: number | null }>`select max(rowid) as last from ${stagedDuplicate(name)}`.execute(this.#db);
    const count = Math.ceil((rows[0]?.last ?? 0) / SLICE_ROWS);
    return Array.from({ length: count }, (_, slice) => sql`rowid > ${slice * SLICE_ROWS} and rowid <= ${(slice + 1) * SLICE_ROWS}`);
  }
}

function stagedDuplicate(name: StagedName): RawBuilder<unknown> {
  return sql.table(`staged_${name}`);
}

function sameKey(name: StagedName): RawBuilder<unknown> {
  const equal = listColumns(name, 'tenant', 'key').map(
    (column) => sql`${sql.ref(`${name}.${column}`)} = ${sql.ref(`staged_${name}.${column}`)}`,
  );
  return sql.join(equal, sql` and `);
}

function refs(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((column) => sql.ref(column)));
}
