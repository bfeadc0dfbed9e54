import { element } from './dom.ts';

/** A piece of a line. What is not one of the known forms is text, as it was written. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis'; readonly children: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly label: string };

export type Block =
  | { readonly kind: 'paragraph' | 'heading' | 'quote'; readonly lines: readonly (readonly Inline[])[] }
  | List
  | { readonly kind: 'table'; readonly head: Row; readonly rows: readonly Row[] }
  | { readonly kind: 'code'; readonly text: string };

/** Numbered when it has a start. */
interface List {
  readonly kind: 'list';
  readonly start: number | null;
  readonly items: readonly Item[];
}

/** A line of a list, and the lists in it. */
interface Item {
  readonly line: readonly Inline[];
  readonly lists: readonly List[];
}

/** The cells of a line of a table. */
type Row = readonly (readonly Inline[])[];

/** How far the end of a form is looked for, so that hostile text costs no more than its length. */
const REACH = 2000;
const DEPTH = 3;

const fence = /^ {0,3}(?:`{3,}|~{3,})/u;
const heading = /^ {0,3}#{1,6} +(?<text>(?:\S.*)?)$/u;
const quote = /^ {0,3}> ?(?<text>.*)$/u;
const bullet = /^(?<indent> *)[-*+] +(?<text>\S.*)$/u;
const numbered = /^(?<indent> *)(?<number>\d{1,9})[.)] +(?<text>\S.*)$/u;
/** Below the head of a table; without a `|` it may be anything. */
const rule = /^[ |:-]+$/u;

/**
 * The small part of Markdown that helps to read a chat message. Nothing of it becomes HTML and nothing is loaded:
 * images are links, links are http(s), and whatever is half written, as while it streams, is text.
 */
export function parseMarkdown(text: string): Block[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    const [block, used] = readBlock(lines, at);
    if (block !== null) blocks.push(block);
    at += used;
  }
  return blocks;
}

/** The block that begins in this line, and how many lines it takes. */
function readBlock(lines: readonly string[], at: number): readonly [Block | null, number] {
  const line = lines[at] ?? '';
  if (line.trim() === '') return [null, 1];
  if (fence.test(line)) return readFence(lines, at);
  const title = heading.exec(line)?.groups?.['text'];
  if (title !== undefined) return [{ kind: 'heading', lines: [parseInline(title)] }, 1];
  if (quote.test(line)) return readLines('quote', lines, at);
  if (bullet.test(line) || numbered.test(line)) return readList(lines, at);
  if (isTable(lines, at)) return readTable(lines, at);
  return readLines('paragraph', lines, at);
}

function readFence(lines: readonly string[], at: number): readonly [Block, number] {
  const sign = (lines[at] ?? '').trimStart().charAt(0).repeat(3);
  const end = lines.findIndex((line, index) => index > at && line.trimStart().startsWith(sign));
  const inside = lines.slice(at + 1, end === -1 ? undefined : end);
  return [{ kind: 'code', text: inside.join('\n') }, inside.length + (end === -1 ? 1 : 2)];
}

function readList(lines: readonly string[], at: number, depth = 0): readonly [List, number] {
  const first = readMark(lines[at]) ?? noMark;
  const items: { readonly line: readonly Inline[]; readonly lists: List[] }[] = [];
  let used = 0;
  for (let mark: Mark | null = first; mark !== null; mark = readMark(lines[at + used])) {
    const last = items.at(-1);
    if (last !== undefined && depth < DEPTH && mark.indent >= first.indent + 2) {
      const [list, inside] = readList(lines, at + used, depth + 1);
      last.lists.push(list);
      used += inside;
      continue;
    }
    if (mark.isNumbered !== first.isNumbered || (depth > 0 && mark.indent < first.indent)) break;
    items.push({ line: parseInline(mark.text), lists: [] });
    used += 1;
  }
  return [{ kind: 'list', start: first.start, items }, used];
}

/** How a line of a list begins. */
interface Mark {
  readonly indent: number;
  readonly isNumbered: boolean;
  readonly start: number | null;
  readonly text: string;
}

const noMark: Mark = { indent: 0, isNumbered: false, start: null, text: '' };

/** Null for a line of no list. */
function readMark(line = ''): Mark | null {
  const groups = (bullet.exec(line) ?? numbered.exec(line))?.groups;
  if (groups === undefined) return null;
  const { indent = '', number, text = '' } = groups;
  return { indent: indent.length, isNumbered: number !== undefined, start: number === undefined ? null : Number(number), text };
}

function isTable(lines: readonly string[], at: number): boolean {
  const [head = '', below = ''] = lines.slice(at, at + 2);
  return (
    head.includes('|') &&
    below.includes('-') &&
    below.includes('|') &&
    rule.test(below) &&
    splitCells(head).length === splitCells(below).length
  );
}

function readTable(lines: readonly string[], at: number): readonly [Block, number] {
  const head = readRow(lines[at] ?? '');
  const rows: Row[] = [];
  for (let line = lines[at + 2]; line?.includes('|') === true; line = lines[at + 2 + rows.length]) {
    const row = readRow(line);
    rows.push(head.map((_, index) => row[index] ?? []));
  }
  return [{ kind: 'table', head, rows }, rows.length + 2];
}

function readRow(line: string): Row {
  return splitCells(line).map((cell) => parseInline(cell));
}

function splitCells(line: string): string[] {
  // A `|` that is escaped belongs to its cell.
  const cells = line
    .trim()
    .replaceAll(String.raw`\|`, '\u{0}')
    .replace(/^\|/u, '')
    .replace(/\|$/u, '')
    .split('|');
  return cells.map((cell) => cell.trim().replaceAll('\u{0}', '|'));
}

function readLines(kind: 'paragraph' | 'quote', lines: readonly string[], at: number): readonly [Block, number] {
  const inside: (readonly Inline[])[] = [];
  for (let line = lines[at]; line !== undefined && continuesBlock(kind, line, inside.length === 0); line = lines[at + inside.length]) {
    if (inside.length > 0 && isTable(lines, at + inside.length)) break;
    inside.push(parseInline(kind === 'quote' ? (quote.exec(line)?.groups?.['text'] ?? line) : line));
  }
  return [{ kind, lines: inside }, inside.length];
}

function continuesBlock(kind: 'paragraph' | 'quote', line: string, isFirst: boolean): boolean {
  if (kind === 'quote') return quote.test(line);
  return isFirst || !(line.trim() === '' || [fence, heading, quote, bullet, numbered].some((form) => form.test(line)));
}

/** A form, and where it ends. */
type Found = readonly [Inline, number];

/** One line. */
export function parseInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = [];
  let plain = '';
  for (let at = 0; at < text.length;) {
    const found = readForm(text, at, depth);
    if (found === null) {
      plain += text.charAt(at);
      at += 1;
      continue;
    }
    if (plain !== '') parts.push({ kind: 'text', text: plain });
    plain = '';
    parts.push(found[0]);
    at = found[1];
  }
  if (plain !== '') parts.push({ kind: 'text', text: plain });
  return parts;
}

function readForm(text: string, at: number, depth: number): Found | null {
  switch (text.charAt(at)) {
    case '`': {
      return readCode(text, at);
    }
    case '*':
    case '_': {
      return depth < DEPTH ? readEmphasis(text, at, depth) : null;
    }
    case '!':
    case '[': {
      return readLink(text, at);
    }
    case 'h': {
      return readAddress(text, at);
    }
    default: {
      return null;
    }
  }
}

function readCode(text: string, at: number): Found | null {
  const end = find(text, '`', at + 1);
  return end <= at + 1 ? null : [{ kind: 'code', text: text.slice(at + 1, end) }, end + 1];
}

function readEmphasis(text: string, at: number, depth: number): Found | null {
  const letter = text.charAt(at);
  const sign = text.charAt(at + 1) === letter ? letter + letter : letter;
  const start = at + sign.length;
  // `snake_case` and `2 * 3 * 4` are no emphasis.
  if (letter === '_' && /\w/u.test(text.charAt(at - 1))) return null;
  if (!/\S/u.test(text.charAt(start))) return null;
  const end = find(text, sign, start + 1);
  if (end === -1 || /\s/u.test(text.charAt(end - 1))) return null;
  if (letter === '_' && /\w/u.test(text.charAt(end + sign.length))) return null;
  const children = parseInline(text.slice(start, end), depth + 1);
  return [{ kind: sign.length === 2 ? 'strong' : 'emphasis', children }, end + sign.length];
}

/** An image is a link to it: nothing is loaded that a model names. */
function readLink(text: string, at: number): Found | null {
  const start = text.charAt(at) === '!' ? at + 1 : at;
  if (text.charAt(start) !== '[') return null;
  const middle = find(text, '](', start + 1);
  const end = middle === -1 ? -1 : find(text, ')', middle + 2);
  if (end === -1) return null;
  const href = safeAddress(text.slice(middle + 2, end).trim());
  if (href === null) return null;
  const label = text.slice(start + 1, middle).trim();
  return [{ kind: 'link', href, label: label === '' ? href : label }, end + 1];
}

function readAddress(text: string, at: number): Found | null {
  if (/\w/u.test(text.charAt(at - 1))) return null;
  // bounded-expression: of REACH characters
  const written = /^https?:\/\/[^\s<>"'`\])]+/u.exec(text.slice(at, at + REACH))?.[0].replace(/[.,;:!?*_]+$/u, '');
  if (written === undefined) return null;
  const href = safeAddress(written);
  return href === null ? null : [{ kind: 'link', href, label: written }, at + written.length];
}

/**
 * The host to be shown beside a link, unless the label is an address of that very host: a label can say anything, and
 * other hosts may stand in an address.
 */
export function hostBeside({ href, label }: { readonly href: string; readonly label: string }): string | null {
  const { host } = new URL(href);
  const shown = safeAddress(label);
  return shown !== null && new URL(shown).host === host ? null : host;
}

/** http(s) alone, without a name and password that only pretend to be a host. */
function safeAddress(text: string): string | null {
  if (!/^https?:\/\//iu.test(text) || !URL.canParse(text)) return null;
  const { protocol, username, password, href } = new URL(text);
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '' ? href : null;
}

function find(text: string, sign: string, from: number): number {
  const found = text.slice(from, from + REACH).indexOf(sign);
  return found === -1 ? -1 : from + found;
}

/** A model's text as elements: created one by one, so that markup in the text stays text. */
export function renderMarkdown(text: string): HTMLElement[] {
  return parseMarkdown(text).map((block) => renderBlock(block));
}

/** Each block runs as its own words do, whatever the page's direction. */
const auto = { dir: 'auto' } as const;

function renderBlock(block: Block): HTMLElement {
  switch (block.kind) {
    case 'code': {
      return element('pre', { tabindex: '0', dir: 'ltr' }, [element('code', {}, [block.text])]);
    }
    case 'list': {
      return renderList(block);
    }
    case 'table': {
      return renderTable(block);
    }
    case 'paragraph': {
      return element('p', auto, renderLines(block.lines));
    }
    case 'quote': {
      return element('blockquote', auto, renderLines(block.lines));
    }
    case 'heading': {
      return element('p', auto, [element('strong', {}, renderLines(block.lines))]);
    }
  }
}

function renderList({ start, items }: List): HTMLElement {
  const shown = items.map(({ line, lists }) => element('li', auto, [...renderInline(line), ...lists.map((list) => renderList(list))]));
  return start === null ? element('ul', auto, shown) : element('ol', { ...auto, start: String(start) }, shown);
}

function renderTable({ head, rows }: { readonly head: Row; readonly rows: readonly Row[] }): HTMLElement {
  const renderRow = (row: Row, name: 'th' | 'td'): HTMLElement =>
    element(
      'tr',
      {},
      row.map((cell) => element(name, auto, renderInline(cell))),
    );
  const body = element(
    'tbody',
    {},
    rows.map((row) => renderRow(row, 'td')),
  );
  const table = element('table', auto, [element('thead', {}, [renderRow(head, 'th')]), body]);
  // Wider than the message, it is moved by keyboard, too.
  return element('div', { class: 'scroll', tabindex: '0' }, [table]);
}

function renderLines(lines: readonly (readonly Inline[])[]): Node[] {
  return lines.flatMap((line, index) => [...(index === 0 ? [] : [element('br')]), ...renderInline(line)]);
}

function renderInline(parts: readonly Inline[]): Node[] {
  return parts.flatMap((part) => renderPart(part));
}

function renderPart(part: Inline): Node[] {
  switch (part.kind) {
    case 'text': {
      return [document.createTextNode(part.text)];
    }
    case 'code': {
      return [element('code', {}, [part.text])];
    }
    case 'strong': {
      return [element('strong', {}, renderInline(part.children))];
    }
    case 'emphasis': {
      return [element('em', {}, renderInline(part.children))];
    }
    case 'link': {
      return renderLink(part);
    }
  }
}

/** The link's host stands beside its label. */
function renderLink(link: { readonly href: string; readonly label: string }): Node[] {
  const anchor = element('a', { href: link.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, [link.label]);
  const host = hostBeside(link);
  return host === null ? [anchor] : [anchor, element('span', { class: 'leads' }, [` (${host})`])];
}
