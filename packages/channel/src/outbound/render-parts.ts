import { readMarkdown } from './markdown.ts';
import { splitIntoParts, type Part } from './split.ts';
import type { Surface } from './surface.ts';

/** `(12/34) `: a message has fewer than a hundred parts on any surface. */
const NUMBER_MAX_UNITS = 8;

/** Markdown as the messages that a provider takes, in order; none when nothing of it can be seen. */
export function renderParts(markdown: string, { dialect, isNumbered = false }: Pick<Surface, 'dialect' | 'isNumbered'>): Part[] {
  const rich = readMarkdown(markdown);
  const parts = splitIntoParts(rich, dialect);
  if (!isNumbered || parts.length < 2) return parts;
  const shorter = splitIntoParts(rich, { ...dialect, maxLength: dialect.maxLength - NUMBER_MAX_UNITS });
  return shorter.map(({ text, plain }, index) => {
    const number = `(${String(index + 1)}/${String(shorter.length)}) `;
    return { text: number + text, plain: number + plain };
  });
}
