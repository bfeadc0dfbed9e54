import { withoutEnding, type Session, type SessionMessage } from '@concierge/contract';
import type { Passage } from '@concierge/index';

/** A passage holds one matter where it can; models embed this much without losing it. */
const PASSAGE_TARGET_CHARACTERS = 900;
const PASSAGE_MAX_CHARACTERS = 1400;
/** Length of the end of a passage that the next one of the same section repeats. */
const OVERLAP_MAX_CHARACTERS = 160;
const sentenceEnd = /[.!?…]\s+|[。！？]\s*|\n/gu;

interface Block {
  readonly text: string;
  readonly line: number;
}

/**
 * Packs blocks into pieces of a passage's size, in order; a block that is longer than one is cut at sentences, words,
 * characters.
 */
function packBlocks(blocks: readonly Block[]): Block[] {
  const packed: Block[] = [];
  let open: Block | undefined;
  for (const block of blocks.flatMap((each) => cutBlock(each))) {
    if (open !== undefined && open.text.length + block.text.length + 2 <= PASSAGE_TARGET_CHARACTERS) {
      open = { text: `${open.text}\n\n${block.text}`, line: open.line };
      continue;
    }
    if (open !== undefined) packed.push(open);
    const overlap = open === undefined ? '' : cutEnd(open.text);
    open = { text: overlap === '' ? block.text : `${overlap}\n\n${block.text}`, line: block.line };
  }
  if (open !== undefined) packed.push(open);
  return packed;
}

function cutBlock({ text, line }: Block): Block[] {
  const cut: Block[] = [];
  let rest = text;
  let at = line;
  while (rest.length > PASSAGE_MAX_CHARACTERS) {
    const end = cutPlace(rest);
    const piece = rest.slice(0, end);
    cut.push({ text: piece.trim(), line: at });
    at += piece.split('\n').length - 1;
    rest = rest.slice(end);
  }
  return [...cut, { text: rest.trim(), line: at }].filter((block) => block.text !== '');
}

/** After the last sentence or line that fits, else after the last word, else between two characters. */
function cutPlace(text: string): number {
  const fitting = text.slice(0, PASSAGE_TARGET_CHARACTERS);
  const sentence = Math.max(...[...fitting.matchAll(sentenceEnd)].map((end) => end.index + end[0].length), -1);
  if (sentence > PASSAGE_TARGET_CHARACTERS / 3) return sentence;
  const word = fitting.search(/\s\S*$/u) + 1;
  if (word > PASSAGE_TARGET_CHARACTERS / 3) return word;
  return /[\uD800-\uDBFF]/u.test(text.charAt(PASSAGE_TARGET_CHARACTERS - 1)) ? PASSAGE_TARGET_CHARACTERS - 1 : PASSAGE_TARGET_CHARACTERS;
}

/** The last sentence or line of a piece, when it is short enough to be repeated. */
function cutEnd(text: string): string {
  const tail = text.trimEnd().slice(-OVERLAP_MAX_CHARACTERS);
  const ends = [...tail.matchAll(sentenceEnd)].map((end) => end.index + end[0].length);
  const last = ends.findLast((end) => end < tail.length);
  return last === undefined ? '' : tail.slice(last);
}

interface Section {
  readonly heading: string;
  readonly blocks: Block[];
  /** The words of the heading itself, and where they stand; undefined for what stands before the first one. */
  readonly own?: Block;
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
    if (marks !== undefined && name !== undefined)
      this.#open(marks.length, { text: withoutEnding(name, '#').trimEnd() || name, line: number });
    else if (line === '' && !isCode) this.#endBlock();
    else this.#add(line, number);
  }

  finish(): { readonly title: string; readonly list: readonly Section[] } {
    this.#endBlock();
    return { title: this.#title ?? '', list: this.#sections.map((section, position) => this.#withText(section, position)) };
  }

  /** A heading with nothing below it, nor another heading, is all of its matter. */
  #withText(section: Section, position: number): Section {
    const { heading, blocks, own } = section;
    const isAlone = blocks.length === 0 && this.#sections[position + 1]?.heading.startsWith(`${heading} › `) !== true;
    return own !== undefined && isAlone ? { heading, blocks: [own] } : section;
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

  #open(level: number, own: Block): void {
    this.#endBlock();
    const name = own.text;
    const isFirst = this.#title === undefined && this.#sections.every(({ blocks }) => blocks.length === 0) && this.#sections.length === 1;
    if (isFirst && level === 1) {
      this.#title = name;
      return;
    }
    this.#path = [...this.#path.filter((outer) => outer.level < level), { level, name }];
    this.#sections.push({ heading: this.#path.map((each) => each.name).join(' › '), blocks: [], own });
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

/** The limit for one conversation, newest first: what lies further back is in its summary. */
const CHARACTERS_MAX = 400_000;

interface Exchange {
  readonly blocks: Block[];
  readonly atMs: number;
}

/**
 * A conversation in passages: what a contact wrote with its answer, and the summary of what compaction took out. What
 * tools gave back is left out: it is material, not conversation. `messages` is the whole of it, in order, as
 * session_history numbers it.
 */
export function sessionPassages(session: Pick<Session, 'title' | 'summary'>, messages: readonly SessionMessage[]): Passage[] {
  const { title, summary } = session;
  const said = latest(listExchanges(messages)).flatMap(({ blocks, atMs }) =>
    packBlocks(blocks).map((block): Passage => ({ title, heading: '', text: block.text, place: block.line, atMs })),
  );
  if (summary === null) return said;
  const atMs = Date.parse(summary.updatedAt);
  const summarized = packBlocks([{ text: summary.text, line: 1 }]).map(({ text }): Passage => ({
    title,
    heading: 'Summary',
    text,
    place: 1,
    atMs,
  }));
  return [...summarized, ...said];
}

function listExchanges(messages: readonly SessionMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool' || message.text.trim() === '') continue;
    const block = { text: `${message.role}: ${message.text.trim()}`, line: index + 1 };
    const open = exchanges.at(-1);
    if (open === undefined || message.role === 'user') exchanges.push({ blocks: [block], atMs: Date.parse(message.at) });
    else open.blocks.push(block);
  }
  return exchanges;
}

function latest(exchanges: readonly Exchange[]): readonly Exchange[] {
  let characters = 0;
  let first = exchanges.length;
  while (first > 0 && characters < CHARACTERS_MAX) {
    first -= 1;
    characters += exchanges[first]?.blocks.reduce((sum, { text }) => sum + text.length, 0) ?? 0;
  }
  return exchanges.slice(first);
}
