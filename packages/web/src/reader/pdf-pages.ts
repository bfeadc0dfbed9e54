import { getDocumentProxy } from 'unpdf';

/**
 * The text of each page, one page in memory at a time. A page that cannot be read is left out.
 * @throws what PDF.js throws of a document that it cannot open
 */
export async function* pdfPages(bytes: Uint8Array): AsyncGenerator<string, void, undefined> {
  const pdf = await getDocumentProxy(bytes);
  for (let number = 1; number <= pdf.numPages; number += 1) {
    const page = await pdf.getPage(number).catch(() => undefined);
    if (page === undefined) continue;
    const content = await page.getTextContent().catch(() => undefined);
    page.cleanup();
    if (content !== undefined)
      yield squeeze(content.items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join(''));
  }
}

/** One space between words, and at most one blank line. */
function squeeze(text: string): string {
  return text
    .replaceAll(/[^\S\n]+/gu, ' ')
    .replaceAll(/ ?\n ?/gu, '\n')
    .replaceAll(/\n{3,}/gu, '\n\n')
    .trim();
}
