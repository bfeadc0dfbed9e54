import { isUnspaced, queryTermsOf } from './fold-text.ts';

/** One word of a question, with the words it also stands for. */
export interface QuestionTerm {
  readonly text: string;
  /** What words begin with that may be a form of it; null where only the word itself counts. */
  readonly stem: string | null;
  /** Words that are there and were probably meant, when the word itself is nowhere. */
  readonly meant: readonly string[];
}

const TERMS_MAX = 24;
/** Shorter words have too many neighbours. */
const STEM_MIN_CHARACTERS = 4;
const ENDING_MAX_CHARACTERS = 2;
const FORM_WEIGHT = 0.7;
const FORM_SHARED_MIN = 0.6;
const MEANT_WEIGHT = 0.6;

/** The words of a question, each once. Single letters count only where there is nothing else. */
export function readQuestion(text: string): QuestionTerm[] {
  const terms = [...new Set(queryTermsOf(text))];
  const telling = terms.filter((term) => term.length > 1 || isUnspaced(term) || /\p{N}/u.test(term));
  return (telling.length > 0 ? telling : terms).slice(0, TERMS_MAX).map((term) => ({ text: term, stem: stemOf(term), meant: [] }));
}

/**
 * How much a word says for a term: 1 for the word itself, less for a form of it, 0 for any other. Forms are told by their common
 * beginning, which serves every language that inflects at the end, and none worse than another.
 */
export function weightOf({ text, stem, meant }: QuestionTerm, word: string): number {
  if (word === text) return 1;
  if (meant.includes(word)) return MEANT_WEIGHT;
  if (stem === null || !word.startsWith(stem)) return 0;
  if (isUnspaced(stem)) return FORM_WEIGHT;
  const shared = sharedBeginning(text, word) / Math.max(text.length, word.length);
  return shared >= FORM_SHARED_MIN ? FORM_WEIGHT * shared : 0;
}

function stemOf(term: string): string | null {
  if (isUnspaced(term)) return Array.from(term).length === 1 ? term : null;
  if (term.length < STEM_MIN_CHARACTERS || /\p{N}/u.test(term)) return null;
  return term.slice(0, Math.max(STEM_MIN_CHARACTERS, term.length - ENDING_MAX_CHARACTERS));
}

function sharedBeginning(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
