import { readQuestion, readTerms, weighTerm, type QuestionTerm } from '@concierge/index';
import { meantTerms } from './meant-words.ts';
import { Vocabulary } from './vocabulary.ts';

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
  const rarity = question.map((_, place) => computeRarity(holding[place] ?? 0, size));
  const whole = rarity.reduce((sum, each) => sum + each, 0);
  const weights = new WordWeights(question);
  return texts.map((words) => {
    const held = weights.heldIn(words);
    const norm = SATURATION * (1 - LENGTH_SHARE + (LENGTH_SHARE * words.length) / Math.max(1, meanLength));
    return held.reduce((sum, weight, place) => sum + ((rarity[place] ?? 0) * weight * (SATURATION + 1)) / (weight + norm), 0) / whole;
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
      for (const [place, weight] of weights.entries()) held[place] = (held[place] ?? 0) + weight;
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
  const holding = question.map((_, place) => held.filter((weights) => (weights[place] ?? 0) > 0).length);
  const scores = scoreTexts(question, words, { size: texts.length, holding });
  return [...scores.keys()]
    .filter((place) => (scores[place] ?? 0) > 0)
    .toSorted((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || other - one);
}

/** Terms that stand nowhere, read as words that do. */
function meaning(question: readonly QuestionTerm[], texts: readonly (readonly string[])[]): QuestionTerm[] {
  const words = new Set(texts.flat());
  const isThere = question.map((term) => words.values().some((word) => weighTerm(term, word) > 0));
  if (isThere.every(Boolean)) return [...question];
  const known = new Vocabulary(words);
  return question.flatMap((term, place) => (isThere[place] === true ? [term] : meantTerms(term, known)));
}
