import type { Kysely } from 'kysely';
import type { IndexTables, MetaTable } from './tables.ts';

type Key = MetaTable['key'];

export async function readMeta(db: Kysely<IndexTables>, tenantId: string, key: Key): Promise<string | undefined> {
  const row = await db.selectFrom('meta').select('value').where('account_id', '=', tenantId).where('key', '=', key).executeTakeFirst();
  return row?.value;
}

export async function writeMeta(db: Kysely<IndexTables>, row: MetaTable): Promise<void> {
  await db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.columns(['account_id', 'key']).doUpdateSet({ value: row.value }))
    .execute();
}

/** Zero before the first rebuild. */
export async function currentGeneration(db: Kysely<IndexTables>, tenantId: string): Promise<number> {
  return Number((await readMeta(db, tenantId, 'generation')) ?? 0);
}

/** Opens a new generation: what is written from now on is not older than the rebuild that asks for it. */
export async function nextGeneration(db: Kysely<IndexTables>, tenantId: string): Promise<number> {
  const generation = (await currentGeneration(db, tenantId)) + 1;
  await writeMeta(db, { account_id: tenantId, key: 'generation', value: String(generation) });
  return generation;
}
