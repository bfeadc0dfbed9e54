import { readFileSync } from 'node:fs';

/** One promise of a specification document: a table row, a rule, a bullet or a paragraph, under its heading. */
export interface SpecLine {
  /** `SI` or `C`, the heading's number or slug, and the place under it: `SI/limits/3`, `C/5/2`. */
  readonly id: string;
  readonly text: string;
}

interface Document {
  readonly prefix: 'SI' | 'C';
  readonly file: URL;
  /** Headings whose lines are promises; all when left out. */
  readonly sections?: readonly string[];
}

const documents: readonly Document[] = [
  { prefix: 'SI', file: new URL('../../../docs/spec/service-interface.md', import.meta.url) },
  { prefix: 'C', file: new URL('../../../docs/spec/contract.md', import.meta.url), sections: ['2', '3', '4', '5', '7'] },
];

function toSlug(heading: string): string {
  const numbered = /^(\d+)\./u.exec(heading);
  if (numbered?.[1] !== undefined) return numbered[1];
  return heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, '-')
    .replaceAll(/^-|-$/gu, '');
}

/** Every promise of the documents, in order. */
export function specLines(): SpecLine[] {
  return documents.flatMap((document) => listLines(document));
}

function listLines({ prefix, file, sections }: Document): SpecLine[] {
  const lines: SpecLine[] = [];
  const counts = new Map<string, number>();
  let section = '';
  let top = '';
  for (const block of splitBlocks(readFileSync(file, 'utf8'))) {
    const heading = /^(#+) (.*)$/u.exec(block);
    if (heading !== null) {
      const [, marks = '', title = ''] = heading;
      section = toSlug(title);
      if (marks.length <= 2) top = section;
      else section = prefix === 'C' ? `${top}-${section}` : section;
      continue;
    }
    if (section === '' || (sections !== undefined && !sections.includes(top))) continue;
    const place = (counts.get(section) ?? 0) + 1;
    const number = Math.max(place, readOwnNumber(block));
    if (number === place) counts.set(section, place);
    lines.push({ id: `${prefix}/${section}/${String(number)}`, text: block });
  }
  return lines;
}

/** An item of a numbered list may be ahead of its place: what is added before it then does not change its number. */
function readOwnNumber(block: string): number {
  return Number(/^(\d+)\. /u.exec(block)?.[1] ?? 0);
}

const tableRule = /^\|[\s|:-]+\|$/u;

/** Table headers, table rules and blank lines say nothing and end what came before. */
function isSilent(row: string, next: string): boolean {
  return row.trim() === '' || tableRule.test(row) || (row.startsWith('|') && tableRule.test(next));
}

/** Headings, table rows without their headers, list items and paragraphs, each with its continuation lines. */
function splitBlocks(markdown: string): string[] {
  const blocks: string[] = [];
  const rows = markdown.split('\n');
  let open = false;
  for (const [index, row] of rows.entries()) {
    const standsAlone = row.startsWith('|') || row.startsWith('#');
    if (isSilent(row, rows[index + 1] ?? '')) {
      open = false;
    } else if (standsAlone || !open || /^(?:-|\d+\.) /u.test(row)) {
      blocks.push(row.trim());
      open = !standsAlone;
    } else {
      blocks.push(`${blocks.pop() ?? ''} ${row.trim()}`);
    }
  }
  return blocks;
}
