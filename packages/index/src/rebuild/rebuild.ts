import type { Skill } from '@concierge/contract';
import { sql, type Kysely } from 'kysely';
import type { IndexBackend } from '../database/backend.ts';
import { nextGeneration, writeMeta } from '../database/meta.ts';
import { TableSync } from './table-sync.ts';
import type { RowContext } from '../lists/rows.ts';
import { replaceSkills } from '../lists/skills.ts';
import { readSource, stagedNames, stageSource } from './staging.ts';
import type { IndexTables } from '../database/tables.ts';
import type { DriftReport, IndexSource, TableDrift } from '../types.ts';

type Db = Kysely<IndexTables>;

/**
 * Reads the files into temporary tables, then puts right in one transaction what differs. What was written since the
 * rebuild began (its `generation` shows that) is newer than what was read from the files, and stays as it is.
 */
export async function rebuildIndex(backend: IndexBackend, tenantId: string, source: IndexSource): Promise<DriftReport> {
  return backend.withOwnConnection(tenantId, async (own) => {
    // Committed before the first file is read: a writer under the generation before had published its file by then.
    const generation = await own.alone(async (db) => nextGeneration(db, tenantId));
    const context = { tenantId, generation };
    await stageSource({ db: own.db, queries: backend.queries }, context, source);
    if (backend.dialect === 'postgres') await analyzeStaged(own.db);
    const skills: Skill[] = [];
    for await (const skill of readSource(readSkills(source))) skills.push(skill);
    return own.settled(async (db) => {
      await settleRemovals(db, context);
      const replacement = new TableSync(db, backend.dialect, context);
      const sessions = await replacement.replace('sessions');
      const turns = await replacement.replace('turns');
      const usage = await replacement.replace('usage');
      const removedUsage = await replacement.replace('removed_usage');
      await replacement.replace('removals');
      await writeMeta(db, { account_id: tenantId, key: 'built', value: String(generation) });
      return { sessions, turns, usage: sum(usage, removedUsage), skills: await replaceSkills(db, tenantId, skills) };
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
