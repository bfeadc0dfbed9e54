import { sql, type Kysely } from 'kysely';
import type { IndexTables } from './tables.ts';

/**
 * A row is seen and written only by a transaction whose `app.account_id` is the row's; without the setting there are no
 * rows. FORCE binds the table's owner too, which the service usually is. Superusers and roles with BYPASSRLS are above
 * any policy: so every query names its tenant as well, and the store warns about such a role.
 */
export async function isolateTenants(db: Kysely<IndexTables>, name: keyof IndexTables): Promise<void> {
  const table = sql.table(name);
  await sql`alter table ${table} enable row level security`.execute(db);
  await sql`alter table ${table} force row level security`.execute(db);
  await sql`create policy tenant on ${table}
    using (account_id = current_setting('app.account_id', true))
    with check (account_id = current_setting('app.account_id', true))`.execute(db);
}
