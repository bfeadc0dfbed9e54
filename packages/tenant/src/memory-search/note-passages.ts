import { withoutEnding } from '@concierge/contract';
import type { Passage } from '@concierge/index';
import { packBlocks, type Block } from './split-text.ts';

interface Section {
  readonly heading: string;
  readonly blocks: Block[];
}

/** A note of more passages than this is a file of data: the rest of it is found by its beginning only. */
const PASSAGES_MAX = 2000;
const TITLE_MAX_CHARACTERS = 200;
/** A longer line is none. */
const HEADING_MAX_CHARACTERS = 500;

/**
 * A Markdown note in passages: by sections first, then by paragraphs. Its title is its first heading of the first
 * level, if it begins with one.
 */
export function notePassages(text: string, atMs: number): Passage[] {
  const sections = readSections(text);
  const title = sections.title.slice(0, TITLE_MAX_CHARACTERS).toWellFormed();
  const passages = sections.list.flatMap(({ heading, blocks }) =>
    packBlocks(blocks).map((block): Passage => ({ title, heading, text: block.text, place: block.line, atMs })),
  );
  // A note that is nothing but its title is found by it.
  if (passages.length === 0 && title !== '') return [{ title, heading: '', text: title, place: 1, atMs }];
  return passages.slice(0, PASSAGES_MAX);
}

function readSections(text: string): { readonly title: string; readonly list: readonly Section[] } {
  const reader = new SectionReader();
  for (const [index, line] of withoutFrontMatter(text).split('\n').entries()) reader.read(line.trimEnd(), index + 1);
  return reader.finish();
}

/** Reads line by line: headings open sections, blank lines end blocks, fences keep what is in them together. */
class SectionReader {
  readonly #sections: Section[] = [{ heading: '', blocks: [] }];
  #title: string | undefined;
  #path: { level: number; name: string }[] = [];
  #block: { lines: string[]; line: number } = { lines: [], line: 1 };
  #fence: string | undefined;

  read(line: string, number: number): void {
    const isCode = this.#readFence(line) || this.#fence !== undefined;
    const [, marks, name] = (isCode || line.length > HEADING_MAX_CHARACTERS ? null : /^(#{1,6})\s+(\S.*)$/u.exec(line)) ?? [];
    if (marks !== undefined && name !== undefined) this.#open(marks.length, withoutEnding(name, '#').trimEnd() || name);
    else if (line === '' && !isCode) this.#endBlock();
    else this.#add(line, number);
  }

  finish(): { readonly title: string; readonly list: readonly Section[] } {
    this.#endBlock();
    return { title: this.#title ?? '', list: this.#sections };
  }

  /** Is the line the beginning or the end of a fence? */
  #readFence(line: string): boolean {
    const fence = /^\s*(`{3,}|~{3,})/u.exec(line)?.[1];
    if (fence === undefined) return false;
    if (this.#fence === undefined) this.#fence = fence;
    else if (fence.startsWith(this.#fence)) this.#fence = undefined;
    return true;
  }

  #add(line: string, number: number): void {
    if (this.#block.lines.length === 0) this.#block.line = number;
    this.#block.lines.push(line);
  }

  #open(level: number, name: string): void {
    this.#endBlock();
    const isFirst = this.#title === undefined && this.#sections.every(({ blocks }) => blocks.length === 0) && this.#sections.length === 1;
    if (isFirst && level === 1) {
      this.#title = name;
      return;
    }
    this.#path = [...this.#path.filter((outer) => outer.level < level), { level, name }];
    this.#sections.push({ heading: this.#path.map((each) => each.name).join(' › '), blocks: [] });
  }

  #endBlock(): void {
    const { lines, line } = this.#block;
    if (lines.length > 0) this.#sections.at(-1)?.blocks.push({ text: lines.join('\n'), line });
    this.#block = { lines: [], line: 1 };
  }
}

/** Its lines become blank ones, so that the numbers of the others stay true. */
function withoutFrontMatter(text: string): string {
  const plain = text.replaceAll('\r\n', '\n');
  const matter = /^---\n[\s\S]*?\n---(?:\n|$)/u.exec(plain)?.[0];
  return matter === undefined ? plain : matter.replaceAll(/[^\n]+/gu, '') + plain.slice(matter.length);
}
