import { isUnspaced, readQueryTerms } from './fold-text.ts';

/** One word of a question, with the words it also stands for. */
export interface QuestionTerm {
  readonly text: string;
  /** What words begin with that may be a form of it; null where only the word itself counts. */
  readonly stem: string | null;
  /** The word and one beside it in the question as one word: "fire wood" is firewood. */
  readonly joined: readonly string[];
  /** Words that are there and were probably meant, when the word itself is nowhere. */
  readonly meant: readonly string[];
}

const TERMS_MAX = 24;
/** Shorter words have too many neighbours. */
const STEM_MIN_CHARACTERS = 4;
const ENDING_MAX_CHARACTERS = 2;
const FORM_WEIGHT = 0.7;
const FORM_SHARED_MIN = 0.6;
/**
 * The weight of a compound that begins with the whole word: less than a form's, as a beginning means less than a stem.
 */
const COMPOUND_SHARED_MIN = 0.35;
const JOINED_MIN_CHARACTERS = 6;
const MEANT_WEIGHT = 0.6;

/** The words of a question, each once. Single letters count only where there is nothing else. */
export function readQuestion(text: string): QuestionTerm[] {
  const all = readQueryTerms(text);
  const telling = all.filter((term) => term.length > 1 || isUnspaced(term) || /\p{N}/u.test(term));
  const said = telling.length > 0 ? telling : all;
  return [...new Set(said)].slice(0, TERMS_MAX).map((term) => ({ ...termFor(term), joined: joinedWith(term, said) }));
}

/** A word by itself, as a question would have it. */
export function termFor(text: string): QuestionTerm {
  return { text, stem: cutStem(text), joined: [], meant: [] };
}

function joinedWith(term: string, said: readonly string[]): string[] {
  const joined = new Set<string>();
  for (const [place, word] of said.entries()) {
    const [before, after] = [said[place - 1], said[place + 1]];
    if (word !== term) continue;
    if (before !== undefined) joined.add(`${before}${word}`);
    if (after !== undefined) joined.add(`${word}${after}`);
  }
  return [...joined].filter((word) => word.length >= JOINED_MIN_CHARACTERS && !isUnspaced(word) && !/\p{N}/u.test(word));
}

/**
 * How much a word counts for a term: 1 for the word itself, less for a form of it, 0 for any other. Forms are
 * recognised by their common beginning, which serves every language that inflects at the end, and none worse than
 * another; so are compounds that begin with the word.
 */
export function weighTerm({ text, stem, joined, meant }: QuestionTerm, word: string): number {
  if (word === text || joined.includes(word)) return 1;
  if (meant.includes(word)) return MEANT_WEIGHT;
  if (joined.some((whole) => word.startsWith(whole))) return FORM_WEIGHT;
  if (stem === null || !word.startsWith(stem)) return 0;
  if (isUnspaced(stem)) return FORM_WEIGHT;
  const shared = sharedBeginning(text, word) / Math.max(text.length, word.length);
  const isCompound = shared >= COMPOUND_SHARED_MIN && word.startsWith(text);
  return shared >= FORM_SHARED_MIN || isCompound ? FORM_WEIGHT * shared : 0;
}

function cutStem(term: string): string | null {
  if (isUnspaced(term)) return Array.from(term).length === 1 ? term : null;
  if (term.length < STEM_MIN_CHARACTERS || /\p{N}/u.test(term)) return null;
  return term.slice(0, Math.max(STEM_MIN_CHARACTERS, term.length - ENDING_MAX_CHARACTERS));
}

function sharedBeginning(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
