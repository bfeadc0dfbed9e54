import { readQuestion, readTerms, weighTerm, type QuestionTerm } from '@concierge/index';
import { meantTerms, Vocabulary } from './meant-words.ts';

/**
 * How often a word must stand in a text to count for as much as it can, and how much longer texts are scaled down
 * (Okapi BM25).
 */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.5;

export interface Collection {
  /** Texts that are looked through in all. */
  readonly size: number;
  /** In how many of them each term of the question stands, in any form. */
  readonly holding: readonly number[];
}

/**
 * One score for each text, its words given: 0 where no term of the question stands, about 1 where each stands once. So
 * scores of different questions can be compared, and show how sure the words are.
 */
export function scoreTexts(
  question: readonly QuestionTerm[],
  texts: readonly (readonly string[])[],
  { size, holding }: Collection,
): number[] {
  const meanLength = texts.reduce((sum, words) => sum + words.length, 0) / Math.max(1, texts.length);
  const rarity = question.map((_, position) => computeRarity(holding[position] ?? 0, size));
  const whole = rarity.reduce((sum, each) => sum + each, 0);
  const weights = new WordWeights(question);
  return texts.map((words) => {
    const held = weights.heldIn(words);
    const norm = SATURATION * (1 - LENGTH_SHARE + (LENGTH_SHARE * words.length) / Math.max(1, meanLength));
    return held.reduce((sum, weight, position) => sum + ((rarity[position] ?? 0) * weight * (SATURATION + 1)) / (weight + norm), 0) / whole;
  });
}

/**
 * Scores words for the terms of one question. Texts have many words in common: each is compared with the question once.
 */
class WordWeights {
  readonly #question: readonly QuestionTerm[];
  /** null: nothing for any of the terms. */
  readonly #known = new Map<string, readonly number[] | null>();

  constructor(question: readonly QuestionTerm[]) {
    this.#question = question;
  }

  /** For each term of the question, the score of all words of a text together. */
  heldIn(words: readonly string[]): number[] {
    const held = this.#question.map(() => 0);
    for (const word of words) {
      const weights = this.#of(word);
      if (weights === null) continue;
      for (const [position, weight] of weights.entries()) held[position] = (held[position] ?? 0) + weight;
    }
    return held;
  }

  #of(word: string): readonly number[] | null {
    let known = this.#known.get(word);
    if (known === undefined) {
      const weights = this.#question.map((term) => weighTerm(term, word));
      known = weights.every((weight) => weight === 0) ? null : weights;
      this.#known.set(word, known);
    }
    return known;
  }
}

function computeRarity(holding: number, size: number): number {
  return Math.log(1 + (Math.max(size, holding) - holding + 0.5) / (holding + 0.5));
}

/**
 * Places of the texts that answer the question best, best first; the later one of equals first. For texts that are all
 * at hand.
 */
export function rankTexts(query: string, texts: readonly string[]): number[] {
  const words = texts.map((text) => readTerms(text));
  const question = meaning(readQuestion(query), words);
  const weights = new WordWeights(question);
  const held = words.map((each) => weights.heldIn(each));
  const holding = question.map((_, position) => held.filter((weights) => (weights[position] ?? 0) > 0).length);
  const scores = scoreTexts(question, words, { size: texts.length, holding });
  return [...scores.keys()]
    .filter((position) => (scores[position] ?? 0) > 0)
    .toSorted((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || other - one);
}

/** Terms that stand nowhere, read as words that do. */
function meaning(question: readonly QuestionTerm[], texts: readonly (readonly string[])[]): QuestionTerm[] {
  const words = new Set(texts.flat());
  const isThere = question.map((term) => words.values().some((word) => weighTerm(term, word) > 0));
  if (isThere.every(Boolean)) return [...question];
  const known = new Vocabulary(words);
  return question.flatMap((term, position) => (isThere[position] === true ? [term] : meantTerms(term, known)));
}

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
  for (const [position, match] of matches.entries()) {
    next = Math.max(next, position);
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
function afterSpace(text: string, position: number): number {
  const space = /\s/u.exec(text.slice(position, position + BEFORE_CHARACTERS));
  return space === null ? position : position + space.index + 1;
}

function beforeSpace(text: string, position: number): number {
  const space = text.slice(position - BEFORE_CHARACTERS, position).search(/\s\S*$/u);
  return space === -1 ? position : position - BEFORE_CHARACTERS + space;
}
