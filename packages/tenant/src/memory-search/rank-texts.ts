import { termsOf } from './fold-text.ts';
import { withMeantWords } from './meant-words.ts';
import { readQuestion, weightOf, type QuestionTerm } from './question.ts';

/** How often a word must stand in a text to count for as much as it can, and how much longer texts are held back (Okapi BM25). */
const SATURATION = 1.2;
const LENGTH_SHARE = 0.5;

export interface Collection {
  /** Texts that are looked through in all. */
  readonly size: number;
  /** In how many of them each term of the question stands, in any form. */
  readonly holding: readonly number[];
}

/** One score for each text, its words given: 0 where no term of the question stands. */
export function scoreTexts(
  question: readonly QuestionTerm[],
  texts: readonly (readonly string[])[],
  { size, holding }: Collection,
): number[] {
  const meanLength = texts.reduce((sum, words) => sum + words.length, 0) / Math.max(1, texts.length);
  const rarity = question.map((_, place) => rarityOf(holding[place] ?? 0, size));
  return texts.map((words) => {
    const held = heldWeights(question, words);
    const norm = SATURATION * (1 - LENGTH_SHARE + (LENGTH_SHARE * words.length) / Math.max(1, meanLength));
    return held.reduce((sum, weight, place) => sum + ((rarity[place] ?? 0) * weight * (SATURATION + 1)) / (weight + norm), 0);
  });
}

/** For each term of the question, what the words of a text say for it together. */
export function heldWeights(question: readonly QuestionTerm[], words: readonly string[]): number[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return question.map((term) => {
    let weight = 0;
    for (const [word, count] of counts) weight += weightOf(term, word) * count;
    return weight;
  });
}

function rarityOf(holding: number, size: number): number {
  return Math.log(1 + (Math.max(size, holding) - holding + 0.5) / (holding + 0.5));
}

/** Places of the texts that answer the question best, best first; the later one of equals first. For texts that are all at hand. */
export function rankTexts(query: string, texts: readonly string[]): number[] {
  const words = texts.map((text) => termsOf(text));
  const question = meaning(readQuestion(query), words);
  const held = words.map((each) => heldWeights(question, each));
  const holding = question.map((_, place) => held.filter((weights) => (weights[place] ?? 0) > 0).length);
  const scores = scoreTexts(question, words, { size: texts.length, holding });
  return [...scores.keys()]
    .filter((place) => (scores[place] ?? 0) > 0)
    .toSorted((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || other - one);
}

/** Terms that stand nowhere, read as words that do. */
function meaning(question: readonly QuestionTerm[], texts: readonly (readonly string[])[]): QuestionTerm[] {
  const known = new Set(texts.flat());
  return question.map((term) => ([...known].some((word) => weightOf(term, word) > 0) ? term : withMeantWords(term, known)));
}
