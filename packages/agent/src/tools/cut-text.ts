/** `text` in at most `maxBytes` of UTF-8, cut between code points, never inside one. */
export function cutText(text: string, maxBytes: number): { text: string; isCut: boolean } {
  // Three bytes per UTF-16 unit is the most: the common short text is not measured at all.
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return { text, isCut: false };
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return { text: text.slice(0, read), isCut: true };
}

/** The first `maxCharacters` UTF-16 units, one less where that would split a pair, with an ellipsis when something is missing. */
export function clip(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const end = /[\uD800-\uDBFF]/u.test(text.charAt(maxCharacters - 1)) ? maxCharacters - 1 : maxCharacters;
  return `${text.slice(0, end)}…`;
}

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
