/**
 * Marks that writers leave out or set at will: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowels and the
 * tatweel.
 */
// eslint-disable-next-line no-misleading-character-class -- marks alone are meant, taken off letters that have been decomposed
const optionalMarks = /[\u0300-\u036F\u0591-\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670]/gu;
/** Letters that have no accent to take off and are written without it all the same. */
const plainLetters: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
  ς: 'σ',
};
/**
 * More marks than any script sets on one letter (Unicode's stream-safe text format, UAX 15); normalizing takes time in
 * the square of a run of them. The two letters beside the marks become marks when they are decomposed.
 */
const MARKS_MAX = 30;
const markRun = /[\p{M}\uFF9E\uFF9F]+/gu;
const specialLetters = /[ßæœøłđðþıς]/gu;
const words = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts that put no space between words. */
const unspaced =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}';
// bounded-expression: a constant, of one character
const unspacedRun = new RegExp(`[${unspaced}]`, 'u');
// bounded-expression: a constant; each character belongs to one of the two runs
const runs = new RegExp(`[${unspaced}ー]+|[^${unspaced}ー]+`, 'gu');
const TERM_MAX_CHARACTERS = 64;

/**
 * The text as it is compared: without case, accents and letter variants. We do this ourselves, and the databases take
 * terms as they are: so both find the same, in any language.
 */
export function foldText(text: string): string {
  const plain = shortenMarks(text).normalize('NFKD').toLowerCase().replaceAll(optionalMarks, '');
  // What was taken away may have stood between marks.
  return shortenMarks(plain)
    .normalize('NFC')
    .replaceAll(specialLetters, (letter) => plainLetters[letter] ?? letter);
}

function shortenMarks(text: string): string {
  return text.replaceAll(markRun, (run) => run.slice(0, MARKS_MAX));
}

/** The terms of a text that is looked through, in order. What is written without spaces becomes pairs of characters. */
export function readTerms(text: string): string[] {
  return foldedWords(text).flatMap((word) => (isUnspaced(word) ? pieces(word, true) : [word]));
}

/** The terms of a question. A single character of an unspaced script stands for every pair that begins with it. */
export function readQueryTerms(text: string): string[] {
  return foldedWords(text).flatMap((word) => (isUnspaced(word) ? pieces(word, false) : [word]));
}

/** Is this (a piece of) a script without spaces? Such terms have no inflections and no typing errors of letters. */
export function isUnspaced(term: string): boolean {
  return unspacedRun.test(term);
}

function foldedWords(text: string): string[] {
  return (foldText(text).match(words) ?? []).map((word) => word.slice(0, TERM_MAX_CHARACTERS).toWellFormed());
}

function pieces(word: string, isLookedThrough: boolean): string[] {
  return (word.match(runs) ?? []).flatMap((run) => (isUnspaced(run) ? pairs(run, isLookedThrough) : [run]));
}

/** The last character stands alone, too, so that a question for a single one finds it wherever it is. */
function pairs(run: string, withLast: boolean): string[] {
  const characters = Array.from(run);
  const found = characters.slice(0, -1).map((character, position) => `${character}${characters[position + 1] ?? ''}`);
  return withLast || found.length === 0 ? [...found, characters.at(-1) ?? ''] : found;
}

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
  for (const [position, word] of said.entries()) {
    const [before, after] = [said[position - 1], said[position + 1]];
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
