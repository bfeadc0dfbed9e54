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
