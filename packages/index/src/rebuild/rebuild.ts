import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Skill } from '@concierge/contract';
import { sql, type Kysely, type RawBuilder } from 'kysely';
import type { IndexBackend } from '../database/backend.ts';
import { nextGeneration, writeMeta } from '../database/meta.ts';
import { foldPending } from '../lists/write-sessions.ts';
import type { RowContext } from '../lists/rows.ts';
import { compareSkills, replaceSkills } from '../lists/skills.ts';
import { readSource, stagedNames, stageSource, listColumns, type StagedName } from './staging.ts';
import type { IndexTables, IndexDialect } from '../database/tables.ts';
import type { DriftReport, IndexSource, TableDrift } from '../types.ts';

type Db = Kysely<IndexTables>;

/**
 * Reads the files into temporary tables, then puts right in one transaction what differs. What was written since the
 * rebuild began (its `generation` shows that) is newer than what was read from the files, and stays as it is.
 */
export async function rebuildIndex(backend: IndexBackend, tenantId: string, source: IndexSource): Promise<DriftReport> {
  return settle({ backend, tenantId, source }, async ({ db, context, skills }) => {
    const replacement = new TableSync(db, backend.dialect, context);
    const sessions = await replacement.replace('sessions');
    const turns = await replacement.replace('turns');
    const usage = await replacement.replace('usage');
    const removedUsage = await replacement.replace('removed_usage');
    const contacts = await replacement.replace('contacts');
    await replacement.replace('removals');
    await writeMeta(db, { account_id: tenantId, key: 'built', value: String(context.generation) });
    return { sessions, turns, usage: sum(usage, removedUsage), skills: await replaceSkills(db, tenantId, skills), contacts };
  });
}

/** What a rebuild would put right; the lists stay as they are. */
export async function compareIndex(backend: IndexBackend, tenantId: string, source: IndexSource): Promise<DriftReport> {
  return settle({ backend, tenantId, source }, async ({ db, context, skills }) => {
    const comparison = new TableSync(db, backend.dialect, context);
    return {
      sessions: await comparison.count('sessions'),
      turns: await comparison.count('turns'),
      usage: sum(await comparison.count('usage'), await comparison.count('removed_usage')),
      skills: await compareSkills(db, tenantId, skills),
      contacts: await comparison.count('contacts'),
    };
  });
}

interface Settled {
  readonly backend: IndexBackend;
  readonly tenantId: string;
  readonly source: IndexSource;
}

interface Staged {
  readonly db: Db;
  readonly context: RowContext;
  readonly skills: readonly Skill[];
}

/** Reads the files into temporary tables, and works with these in one transaction. */
async function settle({ backend, tenantId, source }: Settled, work: (staged: Staged) => Promise<DriftReport>): Promise<DriftReport> {
  return backend.withOwnConnection(tenantId, async (own) => {
    // Committed before the first file is read: a writer under the generation before had published its file by then.
    const generation = await own.alone(async (db) => {
      // What is pending was put before, too.
      await foldPending(db, backend.queries, { tenantId });
      return nextGeneration(db, tenantId);
    });
    const context = { tenantId, generation };
    await stageSource({ db: own.db, queries: backend.queries }, context, source);
    if (backend.dialect === 'postgres') await analyzeStaged(own.db);
    const skills: Skill[] = [];
    for await (const skill of readSource(readSkills(source))) skills.push(skill);
    return own.settled(async (db) => {
      await settleRemovals(db, context);
      return work({ db, context, skills });
    });
  });
}

async function* readSkills(source: IndexSource): AsyncGenerator<Skill> {
  yield* await source.skills();
}

/**
 * A session file beats the note of its removal (it was restored); a removal since the rebuild began beats what had been
 * read before.
 */
async function settleRemovals(db: Db, { tenantId, generation }: RowContext): Promise<void> {
  await sql`delete from staged_removals where exists (select 1 from staged_sessions as s
    where s.id = staged_removals.session_id and s.created_at <= staged_removals.session_created_at)`.execute(db);
  await sql`delete from staged_removed_usage where exists (select 1 from staged_sessions as s
    where s.id = staged_removed_usage.session_id and s.created_at = staged_removed_usage.session_created_at)`.execute(db);
  const removedSince = sql`select 1 from removals as r where r.account_id = ${tenantId} and r.generation >= ${generation}`;
  await sql`delete from staged_sessions where exists (${removedSince}
    and r.session_id = staged_sessions.id and r.session_created_at >= staged_sessions.created_at)`.execute(db);
  await sql`delete from staged_contacts where exists (${removedSince} and r.session_id = staged_contacts.folder)`.execute(db);
  for (const name of ['staged_turns', 'staged_usage']) {
    await sql`delete from ${sql.table(name)} where exists (${removedSince}
      and r.session_id = ${sql.ref(`${name}.session_id`)} and r.session_created_at >= ${sql.ref(`${name}.session_created_at`)})`.execute(
      db,
    );
  }
}

/** The planner knows nothing of temporary tables by itself. */
async function analyzeStaged(db: Db): Promise<void> {
  for (const name of stagedNames) await sql`analyze ${sql.table(`staged_${name}`)}`.execute(db);
}

function sum(one: TableDrift, other: TableDrift): TableDrift {
  return { added: one.added + other.added, changed: one.changed + other.changed, removed: one.removed + other.removed };
}

/**
 * Rows of one statement in SQLite, which answers within the call: some 30 ms in which the process does nothing else.
 */
const SLICE_ROWS = 1000;

/**
 * Makes tables of a tenant equal to their staged duplicates, but for rows that were written since the rebuild began;
 * only what differs is written.
 */
class TableSync {
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

  /** What `replace` would do. */
  async count(name: StagedName): Promise<TableDrift> {
    const others = sql<{ found: number }>`select cast(count(*) as bigint) as found from ${sql.table(name)} where ${this.#isOther(name)}`;
    const drift = { added: 0, changed: 0, removed: (await others.execute(this.#db)).rows[0]?.found ?? 0 };
    for (const slice of await this.#slices(name)) {
      drift.added += await this.#countAbsent(name, slice);
      drift.changed += await this.#countChanged(name, slice);
      await nextTurn();
    }
    return drift;
  }

  async #deleteOthers(name: StagedName): Promise<number> {
    const deleted = await sql`delete from ${sql.table(name)} where ${this.#isOther(name)}`.execute(this.#db);
    return Number(deleted.numAffectedRows ?? 0);
  }

  /** A row of which the files have nothing. */
  #isOther(name: StagedName): RawBuilder<unknown> {
    const { tenantId, generation } = this.#context;
    return sql`account_id = ${tenantId} and generation < ${generation}
      and not exists (select 1 from ${stagedDuplicate(name)} where ${sameKey(name)})`;
  }

  async #countChanged(name: StagedName, slice: RawBuilder<unknown>): Promise<number> {
    const counted = await sql<{ changed: number }>`select cast(count(*) as bigint) as changed from ${stagedDuplicate(name)}
      where ${slice} and exists (select 1 from ${sql.table(name)} where ${sameKey(name)}
        and ${this.#isDiffering(name, `staged_${name}`)})`.execute(this.#db);
    return counted.rows[0]?.changed ?? 0;
  }

  /** A row of before the rebuild that has another content than the table named `read`. */
  #isDiffering(name: StagedName, read: string): RawBuilder<unknown> {
    const differing = listColumns(name, 'content').map(
      (column) => sql`${sql.ref(`${name}.${column}`)} is distinct from ${sql.ref(`${read}.${column}`)}`,
    );
    return sql`${sql.ref(`${name}.generation`)} < ${this.#context.generation} and (${sql.join(differing, sql` or `)})`;
  }

  async #countAbsent(name: StagedName, slice: RawBuilder<unknown>): Promise<number> {
    const counted = await sql<{ absent: number }>`select cast(count(*) as bigint) as absent from ${stagedDuplicate(name)}
      where ${slice} and not exists (select 1 from ${sql.table(name)} where ${sameKey(name)})`.execute(this.#db);
    return counted.rows[0]?.absent ?? 0;
  }

  async #write(name: StagedName, slice: RawBuilder<unknown>): Promise<number> {
    const all = refs(listColumns(name, 'tenant', 'key', 'content', 'generation'));
    const taken = listColumns(name, 'content', 'generation').map((column) => sql`${sql.ref(column)} = ${sql.ref(`excluded.${column}`)}`);
    const key = refs(listColumns(name, 'tenant', 'key'));
    // In the order of keys, as `SessionUpserts` writes: two that lock rows in another order would wait for each other.
    const written =
      await sql`insert into ${sql.table(name)} (${all}) select ${all} from ${stagedDuplicate(name)} where ${slice} order by ${key}
      on conflict (${key}) do update set ${sql.join(taken)}
      where ${this.#isDiffering(name, 'excluded')}`.execute(this.#db);
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
