import { termsOf } from './fold-text.ts';
import { weightOf, type QuestionTerm } from './question.ts';

const SNIPPET_CHARACTERS = 320;
const BEFORE_CHARACTERS = 60;
const words = /[\p{L}\p{N}\p{M}]+/gu;

interface Match {
  readonly start: number;
  readonly end: number;
  readonly term: number;
  readonly weight: number;
}

/** The part of a text in which most of the question stands, on one line; its beginning where nothing of it does. */
export function snippetOf(text: string, question: readonly QuestionTerm[]): string {
  const start = Math.max(0, bestStart(matchesIn(text, question)) - BEFORE_CHARACTERS);
  const from = start === 0 ? 0 : afterSpace(text, start);
  const to = text.length - from <= SNIPPET_CHARACTERS ? text.length : beforeSpace(text, from + SNIPPET_CHARACTERS);
  const part = text.slice(from, to).toWellFormed().replaceAll(/\s+/gu, ' ').trim();
  return `${from > 0 ? '…' : ''}${part}${to < text.length ? '…' : ''}`;
}

function matchesIn(text: string, question: readonly QuestionTerm[]): Match[] {
  const matches: Match[] = [];
  for (const found of text.matchAll(words)) {
    const folded = termsOf(found[0]);
    for (const [term, asked] of question.entries()) {
      const weight = Math.max(0, ...folded.map((word) => weightOf(asked, word)));
      if (weight > 0) matches.push({ start: found.index, end: found.index + found[0].length, term, weight });
    }
  }
  return matches;
}

/** The first of the places from which most different terms are within a snippet. */
function bestStart(matches: readonly Match[]): number {
  let best = { start: 0, worth: 0 };
  for (const [place, { start }] of matches.entries()) {
    const seen = new Map<number, number>();
    for (const match of matches.slice(place)) {
      if (match.end > start + SNIPPET_CHARACTERS - BEFORE_CHARACTERS) break;
      seen.set(match.term, Math.max(seen.get(match.term) ?? 0, match.weight));
    }
    const worth = [...seen.values()].reduce((sum, weight) => sum + weight, 0);
    if (worth > best.worth) best = { start, worth };
  }
  return best.start;
}

/** Where the next word begins; languages without spaces are cut where it comes. */
function afterSpace(text: string, place: number): number {
  const space = /\s/u.exec(text.slice(place, place + BEFORE_CHARACTERS));
  return space === null ? place : place + space.index + 1;
}

function beforeSpace(text: string, place: number): number {
  const space = text.slice(place - BEFORE_CHARACTERS, place).search(/\s\S*$/u);
  return space === -1 ? place : place - BEFORE_CHARACTERS + space;
}
