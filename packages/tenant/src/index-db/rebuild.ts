import type { Skill } from '@concierge/contract';
import { sql, type Kysely } from 'kysely';
import type { IndexBackend } from './backend.ts';
import { nextGeneration, writeMeta } from './meta.ts';
import type { RowContext } from './rows.ts';
import { replaceSkills } from './skills.ts';
import { columnsOf, readSource, stagedNames, stageSource, type StagedName } from './staging.ts';
import type { IndexTables } from './tables.ts';
import type { DriftReport, IndexSource, TableDrift } from './types.ts';

type Db = Kysely<IndexTables>;

/**
 * Reads the files into temporary tables, then puts right in one transaction what differs. What was written since the rebuild began
 * (its `generation` tells) is newer than what was read from the files, and stays as it is.
 */
export async function rebuildIndex(backend: IndexBackend, accountId: string, source: IndexSource): Promise<DriftReport> {
  return backend.withOwnConnection(accountId, async (own) => {
    // Committed before the first file is read: whoever wrote under the generation before had published its file by then.
    const generation = await own.alone(async (db) => nextGeneration(db, accountId));
    const context = { accountId, generation };
    await stageSource({ db: own.db, queries: backend.queries }, context, source);
    if (backend.dialect === 'postgres') await analyzeStaged(own.db);
    const skills: Skill[] = [];
    for await (const skill of readSource(skillsOf(source))) skills.push(skill);
    return own.alone(async (db) => {
      await settleRemovals(db, context);
      const sessions = await replaceRows(db, context, 'sessions');
      const turns = await replaceRows(db, context, 'turns');
      const usage = await replaceRows(db, context, 'usage');
      const removedUsage = await replaceRows(db, context, 'removed_usage');
      await replaceRows(db, context, 'removals');
      await writeMeta(db, { account_id: accountId, key: 'built', value: String(generation) });
      return { sessions, turns, usage: sum(usage, removedUsage), skills: await replaceSkills(db, accountId, skills) };
    });
  });
}

async function* skillsOf(source: IndexSource): AsyncGenerator<Skill> {
  yield* await source.skills();
}

/** A session file beats the note of its removal (it was restored); a removal since the rebuild began beats what had been read before. */
async function settleRemovals(db: Db, { accountId, generation }: RowContext): Promise<void> {
  await sql`delete from staged_removals where exists (select 1 from staged_sessions as s
    where s.id = staged_removals.session_id and s.created_at <= staged_removals.session_created_at)`.execute(db);
  await sql`delete from staged_removed_usage where exists (select 1 from staged_sessions as s
    where s.id = staged_removed_usage.session_id and s.created_at = staged_removed_usage.session_created_at)`.execute(db);
  const removedSince = sql`select 1 from removals as r where r.account_id = ${accountId} and r.generation >= ${generation}`;
  await sql`delete from staged_sessions where exists (${removedSince}
    and r.session_id = staged_sessions.id and r.session_created_at >= staged_sessions.created_at)`.execute(db);
  for (const name of ['staged_turns', 'staged_usage']) {
    await sql`delete from ${sql.table(name)} where exists (${removedSince}
      and r.session_id = ${sql.ref(`${name}.session_id`)} and r.session_created_at >= ${sql.ref(`${name}.session_created_at`)})`.execute(db);
  }
}

/** Makes one table of the tenant equal to its staged twin, but for rows written since; only what differs is written. */
async function replaceRows(db: Db, { accountId, generation }: RowContext, name: StagedName): Promise<TableDrift> {
  const [live, staged] = [sql.table(name), sql.table(`staged_${name}`)];
  const key = columnsOf(name, 'tenant', 'key');
  const all = columnsOf(name, 'tenant', 'key', 'content', 'generation').map((column) => sql.ref(column));
  const content = columnsOf(name, 'content');
  const sameKey = sql.join(
    key.map((column) => sql`${sql.ref(`${name}.${column}`)} = ${sql.ref(`staged_${name}.${column}`)}`),
    sql` and `,
  );
  const differs = sql.join(
    content.map((column) => sql`${sql.ref(`${name}.${column}`)} is distinct from ${sql.ref(`excluded.${column}`)}`),
    sql` or `,
  );
  const taken = sql.join(columnsOf(name, 'content', 'generation').map((column) => sql`${sql.ref(column)} = ${sql.ref(`excluded.${column}`)}`));

  const removed = await sql`delete from ${live} where account_id = ${accountId} and generation < ${generation}
    and not exists (select 1 from ${staged} where ${sameKey})`.execute(db);
  const counted = await sql<{ added: number }>`select cast(count(*) as bigint) as added from ${staged}
    where not exists (select 1 from ${live} where ${sameKey})`.execute(db);
  const written = await sql`insert into ${live} (${sql.join(all)}) select ${sql.join(all)} from ${staged} where true
    on conflict (${sql.join(key.map((column) => sql.ref(column)))}) do update set ${taken}
    where ${sql.ref(`${name}.generation`)} < ${generation} and (${differs})`.execute(db);

  const added = counted.rows[0]?.added ?? 0;
  return { added, changed: Number(written.numAffectedRows ?? 0) - added, removed: Number(removed.numAffectedRows ?? 0) };
}

/** The planner knows nothing of temporary tables by itself. */
async function analyzeStaged(db: Db): Promise<void> {
  for (const name of stagedNames) await sql`analyze ${sql.table(`staged_${name}`)}`.execute(db);
}

function sum(one: TableDrift, other: TableDrift): TableDrift {
  return { added: one.added + other.added, changed: one.changed + other.changed, removed: one.removed + other.removed };
}
