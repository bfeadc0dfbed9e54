import { createHash } from 'node:crypto';
import { sql, type Insertable, type Kysely } from 'kysely';
import { foldText, termsOf } from '../memory-search/fold-text.ts';
import { embeddedText, type Passage } from '../memory-search/passage.ts';
import { withoutSpeakers } from '../memory-search/session-passages.ts';
import { pieces } from './compiled-queries.ts';
import { marksOf, type PassageKind } from './passage-scope.ts';
import { storable } from './rows.ts';
import type { IndexTables, PassagesTable } from './tables.ts';

type Db = Kysely<IndexTables>;
type Row = Insertable<PassagesTable>;

export interface PassageSource {
  readonly accountId: string;
  readonly kind: PassageKind;
  readonly owner: string;
  readonly ref: string;
}

export interface PassageChanges {
  readonly added: number;
  readonly removed: number;
}

const HASH_CHARACTERS = 32;

/**
 * Makes the passages of a source those given, in a transaction that is the caller's. What is the same as before stays as it is, wherever in
 * the source it moved to.
 */
export async function putPassages(
  db: Db,
  source: PassageSource,
  read: { stamp: string; passages: readonly Passage[] },
): Promise<PassageChanges> {
  // First: the row's lock makes two that read the same source one after the other.
  await putSource(db, source, read.stamp);
  const before = new Map((await selectRows(db, source)).map((row) => [keyOf(row), row]));
  const rows = rowsOf(source, read.passages);
  const after = new Set(rows.map(keyOf));
  const removed = [...before].filter(([key]) => !after.has(key)).map(([, row]) => row.id);
  for (const ids of pieces(removed))
    await db.deleteFrom('passages').where('account_id', '=', source.accountId).where('id', 'in', ids).execute();
  const added = rows.filter((row) => !before.has(keyOf(row)));
  for (const some of pieces(added)) {
    await db
      .insertInto('passages')
      .values(some)
      .onConflict((on) => on.doNothing())
      .execute();
  }
  await movePassages(db, rows, before);
  return { added: added.length, removed: removed.length };
}

export async function removePassages(db: Db, source: PassageSource): Promise<void> {
  for (const table of ['passage_sources', 'passages'] as const) {
    await db
      .deleteFrom(table)
      .where('account_id', '=', source.accountId)
      .where('kind', '=', source.kind)
      .where('owner', '=', source.owner)
      .where('ref', '=', source.ref)
      .execute();
  }
}

/** Removes vectors of texts that no passage has any more. */
export async function dropUnusedVectors(db: Db, accountId: string): Promise<void> {
  await sql`delete from passage_vectors where account_id = ${accountId} and not exists (select 1 from passages as p
    where p.account_id = ${accountId} and p.hash = passage_vectors.hash)`.execute(db);
}

/** The hash that a passage's vector is kept by. */
function passageHash(passage: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  return createHash('sha256').update(embeddedText(passage)).digest('hex').slice(0, HASH_CHARACTERS);
}

async function putSource(db: Db, { accountId, kind, owner, ref }: PassageSource, stamp: string): Promise<void> {
  await db
    .insertInto('passage_sources')
    .values({ account_id: accountId, kind, owner, ref, stamp })
    .onConflict((on) => on.columns(['account_id', 'kind', 'owner', 'ref']).doUpdateSet({ stamp }))
    .execute();
}

async function selectRows(db: Db, source: PassageSource) {
  return db
    .selectFrom('passages')
    .select(['id', 'hash', 'nth', 'seq', 'place', 'at'])
    .where('account_id', '=', source.accountId)
    .where('kind', '=', source.kind)
    .where('owner', '=', source.owner)
    .where('ref', '=', source.ref)
    .execute();
}

type StoredRow = Awaited<ReturnType<typeof selectRows>>[number];

async function movePassages(db: Db, rows: readonly Row[], before: ReadonlyMap<string, StoredRow>): Promise<void> {
  for (const row of rows) {
    const old = before.get(keyOf(row));
    if (old === undefined || (old.seq === row.seq && old.place === row.place && old.at === row.at)) continue;
    const { seq, place, at } = row;
    await db.updateTable('passages').set({ seq, place, at }).where('account_id', '=', row.account_id).where('id', '=', old.id).execute();
  }
}

function rowsOf(source: PassageSource, passages: readonly Passage[]): Row[] {
  const seen = new Map<string, number>();
  const { accountId, kind, owner, ref } = source;
  return passages.map((passage, seq) => {
    const stored = { title: storable(passage.title), heading: storable(passage.heading), text: storable(passage.text) };
    const hash = passageHash(stored);
    const nth = seen.get(hash) ?? 0;
    seen.set(hash, nth + 1);
    const at = Math.round(passage.atMs);
    return { account_id: accountId, kind, owner, ref, hash, nth, seq, ...stored, place: passage.place, at, terms: termsIn(source, stored) };
  });
}

function termsIn(source: PassageSource, { title, heading, text }: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  // What a note is called on disk is a word for it, too; a session's id is not.
  const named = source.kind === 'note' ? [foldText(source.ref.replace(/^memory\//u, '').replace(/\.md$/u, ''))] : [];
  const said = source.kind === 'session' ? withoutSpeakers(text) : text;
  return [...marksOf(source), ...[...named, title, heading, said].flatMap((part) => termsOf(part))].join(' ');
}

function keyOf({ hash, nth }: { readonly hash: string; readonly nth: number }): string {
  return `${hash} ${String(nth)}`;
}
