/** How far back from a page's end a paragraph or a line may end it. */
const BREAK_SHARE = 0.8;

/**
 * The text in pages of at most `maxCharacters`, cut at the end of a paragraph or a line where there is one; together
 * the whole.
 */
export function splitPages(text: string, maxCharacters: number): string[] {
  const pages: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = pageEnd(text, start, maxCharacters);
    pages.push(text.slice(start, end));
    start = end;
  }
  return pages.length === 0 ? [''] : pages;
}

function pageEnd(text: string, start: number, maxCharacters: number): number {
  const most = start + maxCharacters;
  if (most >= text.length) return text.length;
  const least = start + Math.floor(maxCharacters * BREAK_SHARE);
  for (const mark of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(mark, most - mark.length);
    if (at >= least) return at + mark.length;
  }
  // Never between the halves of a character.
  return /[\uD800-\uDBFF]/u.test(text.charAt(most - 1)) ? most - 1 : most;
}
