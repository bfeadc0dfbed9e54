/** `text` in at most `maxBytes` of UTF-8, cut between code points, never inside one. */
export function cutText(text: string, maxBytes: number): { text: string; isCut: boolean } {
  // Three bytes per UTF-16 unit is the most: the common short text is not measured at all.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return { text, isCut: false };
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return { text: text.slice(0, read), isCut: true };
}

/** The first `maxCharacters` UTF-16 units, one less where that would split a pair. */
export function headOf(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return text.slice(0, /[\uD800-\uDBFF]/u.test(text.charAt(maxCharacters - 1)) ? maxCharacters - 1 : maxCharacters);
}

/** The same, with an ellipsis when something is missing. */
export function clip(text: string, maxCharacters: number): string {
  return text.length <= maxCharacters ? text : `${headOf(text, maxCharacters)}…`;
}

/** The beginning and the end of `text` in about `maxCharacters` UTF-16 units, pairs kept whole; a note between them says how much is missing. */
export function clipMiddle(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const room = Math.max(0, maxCharacters - MIDDLE_NOTE_CHARACTERS);
  const head = headOf(text, Math.ceil(room / 2));
  const tail = text.slice(text.length - Math.floor(room / 2)).replace(/^[\uDC00-\uDFFF]/u, '');
  return `${head} [… ${String(text.length - head.length - tail.length)} left out …] ${tail}`;
}

/** As long as `clipMiddle` writes it for most texts. */
const MIDDLE_NOTE_CHARACTERS = 24;

/**
 * `text` in at most `maxBytes` of UTF-8 with its beginning and its end; a line between them says how much is missing.
 * @param wholeBytes of what `text` is the beginning and the end of already
 */
export function keepEnds(text: string, maxBytes: number, wholeBytes = 0): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const note = (left: number): string => `\n[… ${String(left)} bytes left out here …]\n`;
  const whole = Math.max(wholeBytes, bytes.length);
  const room = Math.max(0, maxBytes - Buffer.byteLength(note(whole)));
  const head = cutText(text, Math.ceil(room / 2)).text;
  const tail = lastBytes(bytes, Math.floor(room / 2));
  return head + note(whole - Buffer.byteLength(head) - Buffer.byteLength(tail)) + tail;
}

/** The last `maxBytes`, fewer where that would begin inside a code point. */
function lastBytes(bytes: Buffer, maxBytes: number): string {
  let start = bytes.length - maxBytes;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.toString('utf8', start);
}
