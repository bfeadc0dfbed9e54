import { sql, type RawBuilder } from 'kysely';
import type { QuestionTerm } from './question.ts';
import type { IndexDialect, PassageSourcesTable } from '../database/tables.ts';

/** A piece of a note or a conversation that is found and embedded as one. */
export interface Passage {
  /** What the whole is called. */
  readonly title: string;
  /** Headings that lead to the piece, or ''. */
  readonly heading: string;
  readonly text: string;
  /** Where it begins: a line of a note, the number of a message in a conversation. From 1. */
  readonly place: number;
  readonly atMs: number;
}

/**
 * What a model embeds; its hash is what vectors are kept by. Nothing of where the piece lies is in it: a renamed note
 * keeps its vectors.
 */
export function embeddedText({ title, heading, text }: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  return [title, heading, text].filter((part) => part !== '').join('\n');
}

/** The words of a passage of a conversation without their speakers: every passage has those. */
export function withoutSpeakers(text: string): string {
  return text.replaceAll(/^(?:user|assistant): /gmu, '');
}

/** The owner's name in the tables; a contact's is the one of its folder, which has another form. */
export const tenantOwner = 'owner';

export type PassageKind = PassageSourcesTable['kind'];

/** What one search may find, and nothing else. */
export interface PassageScope {
  /** Whose notes. */
  readonly owner: string;
  /** Ids of the conversations; `all` of the tenant is for its owner. */
  readonly sessions: 'all' | readonly string[];
  /** Notes, conversations or both. */
  readonly kinds: readonly PassageKind[];
}

/** No word contains it: folding leaves letters, digits and marks. */
const SCOPE_PREFIX = '§';

/** Stand before the words of a passage: whose it is, as terms that a search must match. */
export function listScopeTerms(source: { readonly kind: PassageKind; readonly owner: string; readonly ref: string }): string[] {
  return source.kind === 'note' ? [`${SCOPE_PREFIX}n${source.owner}`] : [`${SCOPE_PREFIX}s`, `${SCOPE_PREFIX}s${source.ref}`];
}

/** The words of a passage, without its scope terms. */
export function wordsIn(terms: string): string[] {
  return terms.split(' ').filter((term) => !term.startsWith(SCOPE_PREFIX) && term !== '');
}

/** The rows of a scope. Every query for passages uses it; its terms restrict the full-text index in the same way. */
export function scopeCondition(tenantId: string, { owner, sessions, kinds }: PassageScope): RawBuilder<boolean> {
  const conditions: RawBuilder<unknown>[] = [];
  if (kinds.includes('note')) conditions.push(sql`(p.kind = 'note' and p.owner = ${owner})`);
  if (kinds.includes('session') && sessions === 'all') conditions.push(sql`p.kind = 'session'`);
  else if (kinds.includes('session') && sessions.length > 0)
    conditions.push(sql`(p.kind = 'session' and p.owner = ${owner} and p.ref in (${sql.join(Array.from<string>(sessions))}))`);
  if (conditions.length === 0) return sql`1 = 0`;
  return sql`p.account_id = ${tenantId} and (${sql.join(conditions, sql` or `)})`;
}

/** Is any of these terms, or a form of it, in the passage? */
export function holdsAny(dialect: IndexDialect, scope: PassageScope, terms: readonly QuestionTerm[]): RawBuilder<boolean> {
  if (dialect === 'postgres') return sql`p.search @@ ${terms.flatMap((term) => patterns(term, "'", ':*')).join(' | ')}::tsquery`;
  return sql`p.id in (select rowid from passage_terms where passage_terms match ${termsMatch(scope, terms)})`;
}

/** For SQLite's full-text index: passages of the scope with any of these terms. */
export function termsMatch(scope: PassageScope, terms: readonly QuestionTerm[]): string {
  const words = terms.flatMap((term) => patterns(term, '"', '*')).join(' OR ');
  const owners = scopeTerms(scope)
    .map((term) => `"${term}"`)
    .join(' OR ');
  return `(${owners}) AND (${words})`;
}

/** A folded term holds letters, digits and marks only: nothing in it can end the quotes. */
function patterns({ text, stem, joined, meant }: QuestionTerm, quote: string, anyEnding: string): string[] {
  const whole = stem === null ? `${quote}${text}${quote}` : `${quote}${stem}${quote}${anyEnding}`;
  const ofCompounds = joined.map((word) => `${quote}${word}${quote}${anyEnding}`);
  return [whole, ...ofCompounds, ...meant.map((word) => `${quote}${word}${quote}`)];
}

function scopeTerms({ owner, sessions, kinds }: PassageScope): string[] {
  const found: string[] = [];
  if (kinds.includes('note')) found.push(`${SCOPE_PREFIX}n${owner}`);
  if (kinds.includes('session')) found.push(...(sessions === 'all' ? [`${SCOPE_PREFIX}s`] : sessions.map((id) => `${SCOPE_PREFIX}s${id}`)));
  return found;
}
