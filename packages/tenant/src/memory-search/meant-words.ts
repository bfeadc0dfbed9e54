import { isUnspaced, termFor, type QuestionTerm } from '@concierge/index';

const LETTERS = 32;

/** The words that stand in what is searched, ready to be compared with one that does not. */
export class Vocabulary {
  readonly #words: ReadonlySet<string>;
  readonly #byLength = new Map<number, string[]>();
  readonly #letters = new Map<string, number>();
  readonly #sorted: readonly string[];

  constructor(words: Iterable<string>) {
    this.#words = new Set(words);
    this.#sorted = [...this.#words].toSorted();
    for (const word of this.#sorted) {
      const ofLength = this.#byLength.get(word.length);
      if (ofLength === undefined) this.#byLength.set(word.length, [word]);
      else ofLength.push(word);
      this.#letters.set(word, countLetters(word));
    }
  }

  get size(): number {
    return this.#words.size;
  }

  has(word: string): boolean {
    return this.#words.has(word);
  }

  /** Does a word begin like this? */
  hasBeginning(beginning: string): boolean {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < beginning) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low]?.startsWith(beginning) === true;
  }

  /** Longer words that end with this one, in order. */
  endingWith(ending: string, beforeMin: number): string[] {
    return this.#sorted.filter((word) => word.length >= ending.length + beforeMin && word.endsWith(ending));
  }

  /** Words that so many slips may have turned into this one: of about its length, and with nearly its letters. */
  *near(text: string, slipsMax: number): Iterable<string> {
    const letters = countLetters(text);
    for (let length = text.length - slipsMax; length <= text.length + slipsMax; length += 1) {
      for (const word of this.#byLength.get(length) ?? []) {
        if (bitsIn(letters ^ (this.#letters.get(word) ?? 0)) <= 2 * slipsMax) yield word;
      }
    }
  }
}

/** Which letters a word has, as bits: a slip changes two of them at most. */
function countLetters(word: string): number {
  let letters = 0;
  for (let position = 0; position < word.length; position += 1) letters |= 1 << (word.charCodeAt(position) % LETTERS);
  return letters;
}

function bitsIn(value: number): number {
  let rest = value;
  let count = 0;
  for (; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

const WORD_MIN_CHARACTERS = 4;
/** From this length on two slips are forgiven. */
const LONG_WORD_CHARACTERS = 8;
const MEANT_MAX = 3;
const PART_MIN_CHARACTERS = 3;
/** A shorter ending is in too many words by chance. */
const ENDING_MIN_CHARACTERS = 5;
const COMPOUNDS_MAX = 12;
/** What some languages put between the parts of a compound: Zeitung-s-artikel, Straße-n-bahn. */
const linkingElements = ['', 's', 'n', 'en', 'es', 'er', 'e'] as const;

/**
 * Replaces a word of a question that stands nowhere by words that do: the one that is a slip away from it, compounds
 * that end with it, its own parts when it is a compound, or for a long word those that are two slips away. The first of
 * these that there are; else the word as it is.
 */
export function meantTerms(term: QuestionTerm, known: Vocabulary): QuestionTerm[] {
  const { text } = term;
  if (text.length < WORD_MIN_CHARACTERS || isUnspaced(text) || /\p{N}/u.test(text)) return [term];
  const oneSlip = wordsWithin(text, 1, known);
  if (oneSlip.length > 0) return [{ ...term, meant: oneSlip }];
  const compounds = text.length < ENDING_MIN_CHARACTERS ? [] : known.endingWith(text, PART_MIN_CHARACTERS);
  if (compounds.length > 0) return [{ ...term, meant: compounds.slice(0, COMPOUNDS_MAX) }];
  const parts = splitWord(text, known);
  if (parts !== undefined) return parts;
  return [{ ...term, meant: text.length < LONG_WORD_CHARACTERS ? [] : wordsWithin(text, 2, known) }];
}

function wordsWithin(text: string, slipsMax: number, known: Vocabulary): string[] {
  const within: string[] = [];
  for (const word of known.near(text, slipsMax)) {
    if (word.length >= WORD_MIN_CHARACTERS - 1 && slipsBetween(text, word, slipsMax) <= slipsMax) within.push(word);
  }
  return within.toSorted().slice(0, MEANT_MAX);
}

/** Where a compound comes apart into two words that are known: as evenly as it can. */
function splitWord(text: string, known: Vocabulary): QuestionTerm[] | undefined {
  const middle = text.length / 2;
  const cuts = Array.from({ length: text.length - 2 * PART_MIN_CHARACTERS + 1 }, (_, position) => position + PART_MIN_CHARACTERS);
  for (const cut of cuts.toSorted((one, other) => Math.abs(one - middle) - Math.abs(other - middle))) {
    const first = firstPart(text.slice(0, cut), known);
    const second = first === undefined ? undefined : lastPart(text.slice(cut), known);
    if (first !== undefined && second !== undefined) return [first, second];
  }
  return undefined;
}

function firstPart(text: string, known: Vocabulary): QuestionTerm | undefined {
  for (const link of linkingElements) {
    const part = text.slice(0, text.length - link.length);
    if (text.endsWith(link) && part.length >= PART_MIN_CHARACTERS && isKnown(part, known)) return termFor(part);
  }
  return undefined;
}

function lastPart(text: string, known: Vocabulary): QuestionTerm | undefined {
  if (isKnown(text, known)) return termFor(text);
  const compounds = text.length < ENDING_MIN_CHARACTERS ? [] : known.endingWith(text, PART_MIN_CHARACTERS);
  return compounds.length === 0 ? undefined : { ...termFor(text), meant: compounds.slice(0, COMPOUNDS_MAX) };
}

/** A short part must stand there itself; a longer one may be the beginning of a form of it. */
function isKnown(part: string, known: Vocabulary): boolean {
  return known.has(part) || (part.length > WORD_MIN_CHARACTERS && known.hasBeginning(part));
}

/**
 * Letters left out, put in, replaced, or swapped with their neighbour (optimal string alignment): how many it takes to
 * come from one word to the other. A distance over `max` is only reported as over it.
 */
export function slipsBetween(one: string, other: string, max: number): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: other.length + 1 }, (_, position) => position);
  for (let row = 1; row <= one.length; row += 1) {
    const current = nextRow({ one, other, row }, last, beforeLast);
    if (Math.min(...current) > max) return max + 1;
    beforeLast = last;
    last = current;
  }
  return last[other.length] ?? max + 1;
}

/** Slips between the first `row` letters of one word and each beginning of the other. */
function nextRow(
  { one, other, row }: { readonly one: string; readonly other: string; readonly row: number },
  last: readonly number[],
  beforeLast: readonly number[],
): number[] {
  const at = (slips: readonly number[], column: number): number => slips[column] ?? Infinity;
  const current = [row];
  for (let column = 1; column <= other.length; column += 1) {
    const replaced = at(last, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1);
    const isSwapped = column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
    const swapped = isSwapped ? at(beforeLast, column - 2) + 1 : Infinity;
    current.push(Math.min(replaced, at(last, column) + 1, at(current, column - 1) + 1, swapped));
  }
  return current;
}
