import { isUnspaced } from './fold-text.ts';
import type { QuestionTerm } from './question.ts';

const WORD_MIN_CHARACTERS = 4;
/** From this length on two slips are forgiven. */
const LONG_WORD_CHARACTERS = 8;
const MEANT_MAX = 3;

/** The term with those of the known words that are one slip away from it, two for a long word: the nearest ones, and few. */
export function withMeantWords(term: QuestionTerm, known: Iterable<string>): QuestionTerm {
  const { text } = term;
  if (text.length < WORD_MIN_CHARACTERS || isUnspaced(text) || /\p{N}/u.test(text)) return term;
  const slipsMax = text.length >= LONG_WORD_CHARACTERS ? 2 : 1;
  const near: { word: string; slips: number }[] = [];
  for (const word of known) {
    if (Math.abs(word.length - text.length) > slipsMax || word.length < WORD_MIN_CHARACTERS - 1) continue;
    const slips = slipsBetween(text, word, slipsMax);
    if (slips <= slipsMax) near.push({ word, slips });
  }
  const least = Math.min(...near.map(({ slips }) => slips));
  const meant = near.filter(({ slips }) => slips === least).map(({ word }) => word);
  return { ...term, meant: meant.toSorted().slice(0, MEANT_MAX) };
}

/**
 * Letters left out, put in, replaced, or swapped with their neighbour (optimal string alignment): how many it takes to come from one word to the
 * other. Whatever is over `max` is only said to be over it.
 */
export function slipsBetween(one: string, other: string, max: number): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: other.length + 1 }, (_, place) => place);
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
