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
