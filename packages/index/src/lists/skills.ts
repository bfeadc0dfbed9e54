import type { Skill } from '@concierge/contract';
import type { Kysely } from 'kysely';
import { skillRow } from './rows.ts';
import type { IndexTables } from '../database/tables.ts';
import type { TableDrift } from '../types.ts';

type SkillRow = ReturnType<typeof skillRow>;

interface SkillChanges {
  readonly added: readonly SkillRow[];
  readonly changed: readonly SkillRow[];
  /** By name. */
  readonly removed: readonly string[];
}

/** Makes the skills those given; returns what differed. Of two with one name the first counts. */
export async function replaceSkills(db: Kysely<IndexTables>, tenantId: string, skills: readonly Skill[]): Promise<TableDrift> {
  const { added, changed, removed } = await findChanges(db, tenantId, skills);
  for (const name of removed) await db.deleteFrom('skills').where('account_id', '=', tenantId).where('name', '=', name).execute();
  for (const row of [...added, ...changed]) {
    await db
      .insertInto('skills')
      .values(row)
      .onConflict((on) =>
        on.columns(['account_id', 'name']).doUpdateSet({ description: row.description, trigger: row.trigger, path: row.path }),
      )
      .execute();
  }
  return { added: added.length, changed: changed.length, removed: removed.length };
}

/** What `replaceSkills` would do. */
export async function compareSkills(db: Kysely<IndexTables>, tenantId: string, skills: readonly Skill[]): Promise<TableDrift> {
  const { added, changed, removed } = await findChanges(db, tenantId, skills);
  return { added: added.length, changed: changed.length, removed: removed.length };
}

async function findChanges(db: Kysely<IndexTables>, tenantId: string, skills: readonly Skill[]): Promise<SkillChanges> {
  const before = new Map(
    (await db.selectFrom('skills').selectAll().where('account_id', '=', tenantId).execute()).map((row) => [row.name, row]),
  );
  const after = new Map(
    skills
      .toReversed()
      .map((skill) => skillRow(tenantId, skill))
      .map((row) => [row.name, row]),
  );
  const added = [...after.values()].filter((row) => !before.has(row.name));
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const changed = [...after.values()].filter((row) => {
    const old = before.get(row.name);
    return old !== undefined && (old.description !== row.description || old.trigger !== row.trigger || old.path !== row.path);
  });
  return { added, changed, removed };
}
