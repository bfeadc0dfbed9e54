import type { RemovedSession } from '@concierge/contract';
import type { Kysely } from 'kysely';
import { pieces } from '../database/compiled-queries.ts';
import { currentGeneration } from '../database/meta.ts';
import type { IndexTables } from '../database/tables.ts';
import { removeSessionPassages } from '../passages/upsert-passages.ts';
import { removalRow, removedUsageRows } from './rows.ts';

/**
 * Takes a session and its turns out and keeps what they had used. A session of the same id that began later stays. No
 * index leads from a session to its turns: to keep one up to date would cost every turn, to look through the tenant's
 * turns costs a removal some milliseconds.
 */
export async function removeSession(db: Kysely<IndexTables>, tenantId: string, removed: RemovedSession): Promise<void> {
  const context = { tenantId, generation: await currentGeneration(db, tenantId) };
  const removal = removalRow(context, removed);
  const until = removal.session_created_at;
  await db
    .insertInto('removals')
    .values(removal)
    .onConflict((on) =>
      on
        .columns(['account_id', 'session_id'])
        .doUpdateSet({ session_created_at: until, generation: context.generation })
        .where('removals.session_created_at', '<=', until),
    )
    .execute();
  await db
    .deleteFrom('sessions')
    .where('account_id', '=', tenantId)
    .where('id', '=', removed.id)
    .where('created_at', '<=', until)
    .execute();
  for (const table of ['turns', 'usage'] as const) {
    await db
      .deleteFrom(table)
      .where('account_id', '=', tenantId)
      .where('session_id', '=', removed.id)
      .where('session_created_at', '<=', until)
      .execute();
  }
  await removeSessionPassages(db, tenantId, removed.id);
  for (const usage of pieces(removedUsageRows(context, removed))) {
    await db
      .insertInto('removed_usage')
      .values(usage)
      .onConflict((on) => on.doNothing())
      .execute();
  }
}
