import { sql, type Kysely } from 'kysely';
import { CursorPages, type Page } from '../cursor.ts';
import type { IndexTables } from '../database/tables.ts';
import type { ContactsQuery, IndexedContact } from '../types.ts';
import { toLikePattern } from './queries.ts';
import { storable } from './rows.ts';

/** Of the sessions of one contact: when the last one was used, and the greatest id, which no other contact has. */
const lastUsed = sql<number>`max(updated_at)`;
const greatestId = sql<string>`max(id)`;

const contactPages = new CursorPages<{ readonly last_used: number; readonly greatest_id: string }>('contacts', (row) => ({
  atMs: row.last_used,
  id: row.greatest_id,
}));

/** One row more than asked for shows whether there is a next page. */
export async function selectContacts(
  db: Kysely<IndexTables>,
  tenantId: string,
  { limit, words, cursor }: ContactsQuery,
): Promise<Page<IndexedContact>> {
  let select = db
    .selectFrom('sessions')
    .select(['sender', lastUsed.as('last_used'), greatestId.as('greatest_id'), sql<number>`count(*)`.as('conversations')])
    .where('account_id', '=', tenantId)
    .where('sender', 'is not', null)
    .groupBy('sender')
    .orderBy('last_used', 'desc')
    .orderBy('greatest_id', 'desc')
    .limit(limit + 1);
  if (words !== undefined) {
    const pattern = toLikePattern(storable(words.text.toLowerCase()));
    const senders = ['', ...words.senders.map((sender) => storable(sender))];
    select = select.where((eb) => eb.or([sql<boolean>`lower(sender) like ${pattern} escape '\\'`, eb('sender', 'in', senders)]));
  }
  const after = contactPages.readCursor(cursor);
  if (after !== null) select = select.having(sql<boolean>`(${lastUsed}, ${greatestId}) < (${after.atMs}, ${after.id})`);
  const page = contactPages.cutPage(await select.execute(), { limit });
  const items = page.items.map(({ sender, last_used: atMs, conversations }) => ({
    sender: sender ?? '',
    conversations,
    lastSeenAt: new Date(atMs).toISOString(),
  }));
  return { ...page, items };
}
