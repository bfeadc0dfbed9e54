import { readTerms, weighTerm, type QuestionTerm } from '@concierge/index';

const SNIPPET_CHARACTERS = 320;
const BEFORE_CHARACTERS = 60;
/** Sums of weights that are equal but for their rounding. */
const ROUNDING = 1e-9;
const words = /[\p{L}\p{N}\p{M}]+/gu;

interface Match {
  readonly start: number;
  readonly end: number;
  readonly term: number;
  readonly weight: number;
}

/** The part of a text in which most of the question stands, on one line; its beginning where nothing of it does. */
export function cutSnippet(text: string, question: readonly QuestionTerm[]): string {
  const start = Math.max(0, bestStart(matchesIn(text, question)) - BEFORE_CHARACTERS);
  const from = start === 0 ? 0 : afterSpace(text, start);
  const to = text.length - from <= SNIPPET_CHARACTERS ? text.length : beforeSpace(text, from + SNIPPET_CHARACTERS);
  const part = text.slice(from, to).toWellFormed().replaceAll(/\s+/gu, ' ').trim();
  return `${from > 0 ? '…' : ''}${part}${to < text.length ? '…' : ''}`;
}

function matchesIn(text: string, question: readonly QuestionTerm[]): Match[] {
  const matches: Match[] = [];
  for (const found of text.matchAll(words)) {
    const folded = readTerms(found[0]);
    for (const [term, asked] of question.entries()) {
      const weight = Math.max(0, ...folded.map((word) => weighTerm(asked, word)));
      if (weight > 0) matches.push({ start: found.index, end: found.index + found[0].length, term, weight });
    }
  }
  return matches;
}

/**
 * The first of the places from which most different terms are within a snippet. Each match comes into the window once,
 * and leaves it once.
 */
function bestStart(matches: readonly Match[]): number {
  const window = new Window();
  let best = { start: 0, worth: 0 };
  let next = 0;
  for (const [place, match] of matches.entries()) {
    next = Math.max(next, place);
    const until = match.start + SNIPPET_CHARACTERS - BEFORE_CHARACTERS;
    for (let coming = matches[next]; coming !== undefined && coming.end <= until; coming = matches[next]) {
      window.add(coming);
      next += 1;
    }
    if (window.worth > best.worth + ROUNDING) best = { start: match.start, worth: window.worth };
    window.drop(match);
  }
  return best.start;
}

/** The best match of each term among those that are near each other. */
class Window {
  /** For each term, the matches that are best once all before them have left. */
  readonly #candidates = new Map<number, Match[]>();
  /** The worth of all terms together. */
  worth = 0;

  add(match: Match): void {
    const candidates = this.#candidates.get(match.term) ?? [];
    this.#candidates.set(match.term, candidates);
    const before = candidates[0]?.weight ?? 0;
    while ((candidates.at(-1)?.weight ?? Infinity) <= match.weight) candidates.pop();
    candidates.push(match);
    this.worth += (candidates[0]?.weight ?? 0) - before;
  }

  /** The first match that has not left. */
  drop(match: Match): void {
    const candidates = this.#candidates.get(match.term);
    if (candidates?.[0] !== match) return;
    candidates.shift();
    this.worth += (candidates[0]?.weight ?? 0) - match.weight;
  }
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
