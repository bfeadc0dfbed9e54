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
  const found = characters.slice(0, -1).map((character, place) => `${character}${characters[place + 1] ?? ''}`);
  return withLast || found.length === 0 ? [...found, characters.at(-1) ?? ''] : found;
}
