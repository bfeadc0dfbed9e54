import { limits } from '../limits.ts';

/** Length as the interface counts it. A text without surrogate pairs is not copied. */
export function codePoints(text: string): number {
  return text.replaceAll(/[\u{10000}-\u{10FFFF}]/gu, '_').length;
}

/** Is it no longer than a message may be? */
export function fitsMessage(text: string): boolean {
  return codePoints(text) <= limits.messageMaxCharacters;
}

/** `text` in at most `maxBytes` of UTF-8, cut between code points, never inside one. */
export function cutText(text: string, maxBytes: number): { text: string; isCut: boolean } {
  // Three bytes per UTF-16 unit is the most: the common short text is not measured at all.
  if (text.length * 3 <= maxBytes) return { text, isCut: false };
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return { text: text.slice(0, read), isCut: read < text.length };
}

/** The first `maxCharacters` UTF-16 units, one less where that would split a pair. */
export function truncate(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return text.slice(0, /[\uD800-\uDBFF]/u.test(text.charAt(maxCharacters - 1)) ? maxCharacters - 1 : maxCharacters);
}

/** The same, with an ellipsis where something is missing. */
export function clip(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${truncate(text, maxCharacters)}…`;
}

/*
 * What a regular expression would do in the square of the length of its text: `/x+$/` begins anew at every `x`, and
 * `/<a>.*?<\/a>/` looks for the end of every `<a>` that is not closed.
 */

/** The text without the characters at its end that are among `characters`. */
export function withoutEnding(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The text without what stands from each `open` to the next `close`, both included. What is not closed stays. */
export function withoutSpans(text: string, open: string, close: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let start = text.indexOf(open); start >= 0; start = text.indexOf(open, from)) {
    const end = text.indexOf(close, start + open.length);
    if (end < 0) break;
    kept.push(text.slice(from, start));
    from = end + close.length;
  }
  return kept.join('') + text.slice(from);
}

/** The text on one line: its lines without the space around them, and without those that are empty. */
export function onOneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
