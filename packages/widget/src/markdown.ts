import { element } from './dom.ts';

/** A piece of a line. What is not one of the known forms is text, as it was written. */
export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'strong' | 'emphasis'; readonly children: readonly Inline[] }
  | { readonly kind: 'link'; readonly href: string; readonly label: string };

export type Block =
  | { readonly kind: 'paragraph' | 'heading' | 'quote'; readonly lines: readonly (readonly Inline[])[] }
  | { readonly kind: 'list'; readonly start: number | null; readonly items: readonly (readonly Inline[])[] }
  | { readonly kind: 'code'; readonly text: string };

/** How far the end of a form is looked for, so that hostile text costs no more than its length. */
const REACH = 2000;
const DEPTH = 3;

const fence = /^ {0,3}(?:`{3,}|~{3,})/u;
const heading = /^ {0,3}#{1,6} +(?<text>(?:\S.*)?)$/u;
const quote = /^ {0,3}> ?(?<text>.*)$/u;
const bullet = /^ *[-*+] +(?<text>\S.*)$/u;
const numbered = /^ *(?<number>\d{1,9})[.)] +(?<text>\S.*)$/u;

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
  return readLines('paragraph', lines, at);
}

function readFence(lines: readonly string[], at: number): readonly [Block, number] {
  const sign = (lines[at] ?? '').trimStart().charAt(0).repeat(3);
  const end = lines.findIndex((line, index) => index > at && line.trimStart().startsWith(sign));
  const inside = lines.slice(at + 1, end === -1 ? undefined : end);
  return [{ kind: 'code', text: inside.join('\n') }, inside.length + (end === -1 ? 1 : 2)];
}

function readList(lines: readonly string[], at: number): readonly [Block, number] {
  const first = numbered.exec(lines[at] ?? '')?.groups?.['number'];
  const form = first === undefined ? bullet : numbered;
  const items: (readonly Inline[])[] = [];
  for (let item = form.exec(lines[at] ?? ''); item !== null; item = form.exec(lines[at + items.length] ?? '')) {
    items.push(parseInline(item.groups?.['text'] ?? ''));
  }
  return [{ kind: 'list', start: first === undefined ? null : Number(first), items }, items.length];
}

function readLines(kind: 'paragraph' | 'quote', lines: readonly string[], at: number): readonly [Block, number] {
  const inside: (readonly Inline[])[] = [];
  for (let line = lines[at]; line !== undefined && continuesBlock(kind, line, inside.length === 0); line = lines[at + inside.length]) {
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

function renderBlock(block: Block): HTMLElement {
  switch (block.kind) {
    case 'code': {
      return element('pre', { tabindex: '0' }, [element('code', {}, [block.text])]);
    }
    case 'list': {
      const items = block.items.map((item) => element('li', {}, renderInline(item)));
      return block.start === null ? element('ul', {}, items) : element('ol', { start: String(block.start) }, items);
    }
    case 'paragraph': {
      return element('p', {}, renderLines(block.lines));
    }
    case 'quote': {
      return element('blockquote', {}, renderLines(block.lines));
    }
    case 'heading': {
      return element('p', {}, [element('strong', {}, renderLines(block.lines))]);
    }
  }
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
