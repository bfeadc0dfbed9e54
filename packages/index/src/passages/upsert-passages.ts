import { createHash, randomUUID } from 'node:crypto';
import { sql, type Insertable, type Kysely, type Selectable } from 'kysely';
import { foldText, readTerms } from './question.ts';
import { embeddedText, withoutSpeakers, type Passage, listScopeTerms, type PassageKind } from './passage.ts';
import { pieces } from '../database/compiled-queries.ts';
import { storable } from '../lists/rows.ts';
import type { IndexTables, PassageSourcesTable, PassagesTable } from '../database/tables.ts';

type Db = Kysely<IndexTables>;
type Row = Insertable<PassagesTable>;

/** Whose sources, and of which kind. */
export interface PassageOwner {
  readonly tenantId: string;
  readonly kind: PassageKind;
  readonly owner: string;
}

export interface PassageSource extends PassageOwner {
  readonly ref: string;
}

export interface PassageChanges {
  readonly added: number;
  readonly removed: number;
}

const HASH_CHARACTERS = 32;

/** What was read of one source. */
export interface SourcePassages {
  readonly ref: string;
  readonly stamp: string;
  readonly passages: readonly Passage[];
}

/**
 * Makes the passages of sources of one kind and owner those given, in a transaction that is the caller's; what changed,
 * in the same order. What is the same as before stays as it is, wherever in its source it moved to.
 */
export async function putPassages(
  db: Db,
  { tenantId, kind, owner }: PassageOwner,
  reads: readonly SourcePassages[],
): Promise<PassageChanges[]> {
  const sources = reads.map(({ ref, stamp }) => ({ account_id: tenantId, kind, owner, ref, stamp }));
  for (const some of pieces(sources)) await putSources(db, some);
  const { before, rows, added, removed } = await findChanges(db, { tenantId, kind, owner }, reads);
  for (const some of pieces(removed.map(({ id }) => id)))
    await db.deleteFrom('passages').where('account_id', '=', tenantId).where('id', 'in', some).execute();
  for (const some of pieces(added)) {
    await db
      .insertInto('passages')
      .values(some)
      .onConflict((on) => on.doNothing())
      .execute();
  }
  await movePassages(db, rows, before);
  return countChanges(reads, { added, removed });
}

/** What `putPassages` would do. */
export async function comparePassages(db: Db, owner: PassageOwner, reads: readonly SourcePassages[]): Promise<PassageChanges[]> {
  return countChanges(reads, await findChanges(db, owner, reads));
}

interface RowChanges {
  readonly added: readonly Row[];
  readonly removed: readonly StoredRow[];
}

async function findChanges(
  db: Db,
  owner: PassageOwner,
  reads: readonly SourcePassages[],
): Promise<RowChanges & { readonly before: ReadonlyMap<string, StoredRow>; readonly rows: readonly Row[] }> {
  const before = await selectRows(
    db,
    owner,
    reads.map(({ ref }) => ref),
  );
  const rows = reads.flatMap(({ ref, passages }) => buildRows({ ...owner, ref }, passages));
  const after = new Set(rows.map((row) => toRowKey(row)));
  const removed = [...before.values()].filter((row) => !after.has(toRowKey(row)));
  return { before, rows, added: rows.filter((row) => !before.has(toRowKey(row))), removed };
}

/** By source, in their order. */
function countChanges(reads: readonly SourcePassages[], { added, removed }: RowChanges): PassageChanges[] {
  const countByRef = (of: readonly { readonly ref: string }[]): Map<string, number> => {
    const counts = new Map<string, number>();
    for (const { ref } of of) counts.set(ref, (counts.get(ref) ?? 0) + 1);
    return counts;
  };
  const [addedByRef, removedByRef] = [countByRef(added), countByRef(removed)];
  return reads.map(({ ref }) => ({ added: addedByRef.get(ref) ?? 0, removed: removedByRef.get(ref) ?? 0 }));
}

export async function removePassages(db: Db, source: PassageSource): Promise<void> {
  for (const table of ['passage_sources', 'passages'] as const) {
    await db
      .deleteFrom(table)
      .where('account_id', '=', source.tenantId)
      .where('kind', '=', source.kind)
      .where('owner', '=', source.owner)
      .where('ref', '=', source.ref)
      .execute();
  }
}

/** A conversation's, under any owner: it is read anew by the next search, if it is still there. */
export async function removeSessionPassages(db: Db, tenantId: string, sessionId: string): Promise<void> {
  for (const table of ['passage_sources', 'passages'] as const) {
    await db.deleteFrom(table).where('account_id', '=', tenantId).where('kind', '=', 'session').where('ref', '=', sessionId).execute();
  }
  await dropUnusedVectors(db, tenantId);
}

/**
 * Call it first in each transaction that changes passages. Its lock makes two that read the same sources one after the
 * other, and its row shows a reader that kept something of the passages whether they are still those: the first part
 * stays until the index is lost, the second one changes each time.
 */
export async function markPassagesChanged(db: Db, tenantId: string): Promise<void> {
  await sql`insert into meta (account_id, key, value) values (${tenantId}, 'passages', ${`${randomUUID()} ${randomUUID()}`})
    on conflict (account_id, key) do update set value = substr(meta.value, 1, 36) || substr(excluded.value, 37)`.execute(db);
}

/** Removes vectors of texts that no passage has any more. */
export async function dropUnusedVectors(db: Db, tenantId: string): Promise<void> {
  await sql`delete from passage_vectors where account_id = ${tenantId} and not exists (select 1 from passages as p
    where p.account_id = ${tenantId} and p.hash = passage_vectors.hash)`.execute(db);
}

/** The hash that a passage's vector is kept by. */
function passageHash(passage: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  return createHash('sha256').update(embeddedText(passage)).digest('hex').slice(0, HASH_CHARACTERS);
}

async function putSources(db: Db, sources: Insertable<PassageSourcesTable>[]): Promise<void> {
  await db
    .insertInto('passage_sources')
    .values(sources)
    .onConflict((on) => on.columns(['account_id', 'kind', 'owner', 'ref']).doUpdateSet({ stamp: (row) => row.ref('excluded.stamp') }))
    .execute();
}

/** By key. */
async function selectRows(db: Db, { tenantId, kind, owner }: PassageOwner, refs: readonly string[]): Promise<Map<string, StoredRow>> {
  const rows = new Map<string, StoredRow>();
  for (const some of pieces(refs)) {
    const found = await db
      .selectFrom('passages')
      .select(['id', 'ref', 'hash', 'nth', 'seq', 'place', 'at'])
      .where('account_id', '=', tenantId)
      .where('kind', '=', kind)
      .where('owner', '=', owner)
      .where('ref', 'in', some)
      .execute();
    for (const row of found) rows.set(toRowKey(row), row);
  }
  return rows;
}

type StoredRow = Pick<Selectable<PassagesTable>, 'id' | 'ref' | 'hash' | 'nth' | 'seq' | 'place' | 'at'>;

async function movePassages(db: Db, rows: readonly Row[], before: ReadonlyMap<string, StoredRow>): Promise<void> {
  for (const row of rows) {
    const old = before.get(toRowKey(row));
    if (old === undefined || (old.seq === row.seq && old.place === row.place && old.at === row.at)) continue;
    const { seq, place, at } = row;
    await db.updateTable('passages').set({ seq, place, at }).where('account_id', '=', row.account_id).where('id', '=', old.id).execute();
  }
}

function buildRows(source: PassageSource, passages: readonly Passage[]): Row[] {
  const seen = new Map<string, number>();
  const { tenantId, kind, owner, ref } = source;
  return passages.map((passage, seq) => {
    const stored = { title: storable(passage.title), heading: storable(passage.heading), text: storable(passage.text) };
    const hash = passageHash(stored);
    const nth = seen.get(hash) ?? 0;
    seen.set(hash, nth + 1);
    const at = Math.round(passage.atMs);
    return { account_id: tenantId, kind, owner, ref, hash, nth, seq, ...stored, place: passage.place, at, terms: termsIn(source, stored) };
  });
}

function termsIn(source: PassageSource, { title, heading, text }: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  // What a note is called on disk is a word for it, too; a session's id is not.
  const named = source.kind === 'note' ? [foldText(source.ref.replace(/^memory\//u, '').replace(/\.md$/u, ''))] : [];
  const said = source.kind === 'session' ? withoutSpeakers(text) : text;
  return [...listScopeTerms(source), ...[...named, title, heading, said].flatMap((part) => readTerms(part))].join(' ');
}

function toRowKey({ ref, hash, nth }: { readonly ref: string; readonly hash: string; readonly nth: number }): string {
  return `${hash} ${String(nth)} ${ref}`;
}
