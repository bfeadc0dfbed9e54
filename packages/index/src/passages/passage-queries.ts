import { sql, type Kysely, type RawBuilder } from 'kysely';
import type { QuestionTerm } from './question.ts';
import { holdsAny, scopeCondition, termsMatch, wordsIn, type PassageKind, type PassageScope } from './passage.ts';
import type { IndexDialect, IndexTables } from '../database/tables.ts';

type Db = Kysely<IndexTables>;

/** Where a passage stands in the order of equals: later first. */
export interface PassageRank {
  readonly id: number;
  readonly kind: PassageKind;
  readonly ref: string;
  readonly seq: number;
  readonly atMs: number;
}

export interface PassageWords extends PassageRank {
  readonly words: readonly string[];
}

export interface FoundPassage extends PassageRank {
  readonly title: string;
  readonly heading: string;
  readonly place: number;
  readonly text: string;
}

export interface UnembeddedPassage {
  readonly hash: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
}

interface RankRow {
  id: number;
  kind: PassageKind;
  ref: string;
  seq: number;
  at: number;
}

const rankColumns = sql`p.id, p.kind, p.ref, p.seq, p.at`;
/**
 * Vectors compared in one search: some 200 ms of work in which SQLite blocks all other work of the process; later
 * passages go first.
 */
const COMPARED_MAX = 20_000;
/** Both ways of comparing agree so far; what differs less is a tie, which the later one wins. */
export const DISTANCE_DIGITS = 5;
/** The same in both databases and after every rebuild, which gives other ids. */
const laterFirst = sql`p.at desc, p.kind, p.ref, p.seq`;

export interface PassageQueries {
  readonly db: Db;
  readonly dialect: IndexDialect;
  readonly tenantId: string;
}

/** How many passages there are in the scope, and how many hold each of the terms. */
export async function countHolding(
  { db, dialect, tenantId }: PassageQueries,
  scope: PassageScope,
  question: readonly QuestionTerm[],
): Promise<{ size: number; holding: number[] }> {
  const toTableName = (position: number): RawBuilder<unknown> => sql.ref(`t${String(position)}`);
  const counts = question.map((term, position) =>
    dialect === 'sqlite'
      ? sql`(select count(*) from passage_terms where passage_terms match ${termsMatch(scope, [term])}) as ${toTableName(position)}`
      : sql`cast(count(*) filter (where ${holdsAny(dialect, scope, [term])}) as bigint) as ${toTableName(position)}`,
  );
  const { rows } = await sql<Record<string, number>>`select ${sql.join([sql`cast(count(*) as bigint) as size`, ...counts])}
    from passages as p where ${scopeCondition(tenantId, scope)}`.execute(db);
  const row = rows[0] ?? {};
  return { size: row['size'] ?? 0, holding: question.map((_, position) => row[`t${String(position)}`] ?? 0) };
}

/** Passages that hold one of the terms, with their words; the latest where there are more. */
export async function selectHolding(
  { db, dialect, tenantId }: PassageQueries,
  scope: PassageScope,
  { terms, limit }: { readonly terms: readonly QuestionTerm[]; readonly limit: number },
): Promise<PassageWords[]> {
  const { rows } = await sql<RankRow & { terms: string }>`select ${rankColumns}, p.terms from passages as p
    where ${scopeCondition(tenantId, scope)} and ${holdsAny(dialect, scope, terms)} order by ${laterFirst} limit ${limit}`.execute(db);
  return rows.map((row) => ({ ...toPassageRank(row), words: wordsIn(row.terms) }));
}

/** The different words of the latest passages. */
export async function selectWords({ db, tenantId }: PassageQueries, scope: PassageScope, limit: number): Promise<Set<string>> {
  const { rows } = await sql<{ terms: string }>`select p.terms from passages as p
    where ${scopeCondition(tenantId, scope)} order by ${laterFirst} limit ${limit}`.execute(db);
  return new Set(rows.flatMap(({ terms }) => wordsIn(terms)));
}

export async function selectPassages(
  { db, tenantId }: PassageQueries,
  scope: PassageScope,
  ids: readonly number[],
): Promise<FoundPassage[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<RankRow & Pick<FoundPassage, 'title' | 'heading' | 'place' | 'text'>>`
    select ${rankColumns}, p.title, p.heading, p.place, p.text from passages as p
    where ${scopeCondition(tenantId, scope)} and p.id in (${sql.join([...ids])})`.execute(db);
  return rows.map(({ title, heading, place, text, ...row }) => ({ ...toPassageRank(row), title, heading, place, text }));
}

/** The ids that have no vector of this model. */
export async function selectWithoutVector(
  { db, tenantId }: PassageQueries,
  scope: PassageScope,
  { model, ids }: { readonly model: string; readonly ids: readonly number[] },
): Promise<number[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<{ id: number }>`select p.id from passages as p where ${scopeCondition(tenantId, scope)}
    and p.id in (${sql.join([...ids])}) and not exists (select 1 from passage_vectors as v
    where v.account_id = ${tenantId} and v.model = ${model} and v.hash = p.hash)`.execute(db);
  return rows.map(({ id }) => id);
}

/** Passages of the scope without a vector of this model, later first, each content once; and how many there are. */
export async function selectUnembedded(
  { db, tenantId }: PassageQueries,
  scope: PassageScope,
  { model, limit }: { readonly model: string; readonly limit: number },
): Promise<{ passages: UnembeddedPassage[]; count: number }> {
  const lacking = sql`passages as p where ${scopeCondition(tenantId, scope)} and not exists (select 1 from passage_vectors as v
    where v.account_id = ${tenantId} and v.model = ${model} and v.hash = p.hash)`;
  const counted = await sql<{ count: number }>`select cast(count(distinct p.hash) as bigint) as count from ${lacking}`.execute(db);
  const count = counted.rows[0]?.count ?? 0;
  if (count === 0) return { passages: [], count };
  const { rows } = await sql<UnembeddedPassage>`select p.hash, max(p.title) as title, max(p.heading) as heading, max(p.text) as text
    from ${lacking} group by p.hash order by max(p.at) desc, p.hash limit ${limit}`.execute(db);
  return { passages: rows, count };
}

/** The nearest ones by sqlite-vec. */
export async function selectNearest(
  { db, tenantId }: PassageQueries,
  scope: PassageScope,
  { model, vector, limit }: { readonly model: string; readonly vector: Uint8Array; readonly limit: number },
): Promise<(PassageRank & { readonly similarity: number })[]> {
  const distance = sql`round(vec_distance_cosine(v.vector, ${vector}), ${sql.lit(DISTANCE_DIGITS)})`;
  const { rows } = await sql<RankRow & { distance: number }>`with latest as (${embedded(tenantId, scope, model)})
    select ${rankColumns}, ${distance} as distance
    from latest as p join passage_vectors as v on v.account_id = ${tenantId} and v.model = ${model} and v.hash = p.hash
    where length(v.vector) = ${vector.length} order by distance, ${laterFirst} limit ${limit}`.execute(db);
  return rows.map((row) => ({ ...toPassageRank(row), similarity: 1 - row.distance }));
}

/** Passages of the scope that have a vector of this model; the latest where there are more than are compared. */
export async function selectEmbedded(
  { db, tenantId }: PassageQueries,
  scope: PassageScope,
  model: string,
): Promise<(PassageRank & { readonly hash: string })[]> {
  const { rows } = await sql<RankRow & { hash: string }>`${embedded(tenantId, scope, model)}`.execute(db);
  return rows.map((row) => ({ ...toPassageRank(row), hash: row.hash }));
}

function embedded(tenantId: string, scope: PassageScope, model: string): RawBuilder<unknown> {
  return sql`select ${rankColumns}, p.hash from passages as p join passage_vectors as v on v.account_id = p.account_id and v.hash = p.hash
    where ${scopeCondition(tenantId, scope)} and v.model = ${model} order by ${laterFirst} limit ${sql.lit(COMPARED_MAX)}`;
}

function toPassageRank({ id, kind, ref, seq, at }: RankRow): PassageRank {
  return { id, kind, ref, seq, atMs: at };
}
