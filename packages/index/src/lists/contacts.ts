import { sql, type ExpressionBuilder, type Kysely } from 'kysely';
import { CursorPages, type Page } from '../cursor.ts';
import { pieces } from '../database/compiled-queries.ts';
import { currentGeneration } from '../database/meta.ts';
import type { IndexTables } from '../database/tables.ts';
import type { ContactsQuery, IndexedContact, NamedContact } from '../types.ts';
import { contactRow, foldWords, storable } from './rows.ts';

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
    select = select.where((eb) =>
      eb.or([
        sql<boolean>`lower(sender) like ${pattern} escape '\\'`,
        eb('sender', 'in', senders),
        eb('sender', 'in', selectFolded(eb, tenantId, words.text)),
        eb('sender', 'in', selectNamed(eb, tenantId, words.text)),
      ]),
    );
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

/** The last line of what is searched of a session: its sender, folded. */
const foldedSender = sql<string>`substr(words, length(rtrim(words, replace(words, ${'\n'}, ''))) + 1)`;

/** Senders whose id has this in it, in any case of any script: the databases know that of ASCII alone. */
function selectFolded(eb: ExpressionBuilder<IndexTables, 'sessions'>, tenantId: string, text: string) {
  const pattern = toLikePattern(storable(foldWords(text)));
  return eb
    .selectFrom('sessions')
    .select('sender')
    .where('account_id', '=', tenantId)
    .where(sql<boolean>`words like ${pattern} escape '\\'`)
    .where(sql<boolean>`${foldedSender} like ${pattern} escape '\\'`);
}

/** A pattern for what has this text in it. */
export function toLikePattern(text: string): string {
  return `%${text.replaceAll(/[%_\\]/gu, String.raw`\$&`)}%`;
}

/** Senders of contacts whose name or id has this in it. */
export function selectNamed(eb: ExpressionBuilder<IndexTables, 'sessions'>, tenantId: string, text: string) {
  const pattern = toLikePattern(storable(foldWords(text)));
  return eb
    .selectFrom('contacts')
    .select('contacts.sender')
    .where('contacts.account_id', '=', tenantId)
    .where(sql<boolean>`contacts.words like ${pattern} escape '\\'`);
}

/** Those of whom there is a file, by a part of name or id. */
export async function findNamed(
  db: Kysely<IndexTables>,
  tenantId: string,
  { text, limit }: { readonly text: string; readonly limit: number },
): Promise<string[]> {
  const pattern = toLikePattern(storable(foldWords(text)));
  const rows = await db
    .selectFrom('contacts')
    .select('sender')
    .where('account_id', '=', tenantId)
    .where(sql<boolean>`words like ${pattern} escape '\\'`)
    .orderBy('folder')
    .limit(limit)
    .execute();
  return rows.map(({ sender }) => sender);
}

/** Writes the row of one contact, in a transaction of the caller's. */
export async function putContact(db: Kysely<IndexTables>, tenantId: string, contact: NamedContact): Promise<void> {
  const row = contactRow({ tenantId, generation: await currentGeneration(db, tenantId) }, contact);
  const { sender, words, generation } = row;
  await db
    .insertInto('contacts')
    .values(row)
    .onConflict((on) => on.columns(['account_id', 'folder']).doUpdateSet({ sender, words, generation }))
    .execute();
}

/**
 * Takes contacts out, by their folders. A rebuild that has read their files already learns it from the table of
 * removals, as it does of sessions: ids there are hashes of both.
 */
export async function removeContacts(db: Kysely<IndexTables>, tenantId: string, folders: readonly string[]): Promise<void> {
  const generation = await currentGeneration(db, tenantId);
  for (const some of pieces(folders)) {
    const removals = some.map((folder) => ({ account_id: tenantId, session_id: folder, session_created_at: Date.now(), generation }));
    await db
      .insertInto('removals')
      .values(removals)
      .onConflict((on) => on.columns(['account_id', 'session_id']).doUpdateSet({ generation }))
      .execute();
    await db.deleteFrom('contacts').where('account_id', '=', tenantId).where('folder', 'in', some).execute();
  }
}
