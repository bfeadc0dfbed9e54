import type { Definition, FootnoteDefinition, List, ListItem, Nodes, Parents, Table, TableRow } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import type { Marks, RichText, Run } from './rich-text.ts';

/** Longer ones are no use behind a word, and one of them could fill a whole message with what no reader sees. */
const LINK_MAX_CHARACTERS = 500;
const linkSchemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:', 'tel:']);

/**
 * What a model wrote, as runs of marked text. Characters that databases and providers refuse (U+0000, halves of
 * surrogate pairs) are gone; HTML in it is text, never markup.
 */
export function readMarkdown(markdown: string): RichText {
  const clean = markdown.toWellFormed().replaceAll('\0', '').replaceAll(/\r\n?/gu, '\n');
  if (isHostile(clean)) return [{ text: clean, marks: {} }];
  const tree = fromMarkdown(clean, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  const reader = new MarkdownReader();
  reader.read(tree);
  return reader.runs();
}

/** Deeper than people read; thousands of levels are a stack that overflows. */
const NESTED = /^(?:[ \t]*(?:>|(?:[*+-]|\d{1,9}[.)])[ \t])){64}/mu;
const DELIMITERS_MAX = 5000;

/** Text that would block the parser, and all other tenants, for many seconds. It is sent as it was written. */
function isHostile(markdown: string): boolean {
  if (NESTED.test(markdown)) return true;
  return markdown.split(/\n{2,}/u).some((block) => block.replaceAll(/[^*_~]/gu, '').length > DELIMITERS_MAX);
}

class MarkdownReader {
  readonly #runs: Run[] = [];
  readonly #definitions = new Map<string, Definition>();

  read(root: Nodes): void {
    this.#define(root);
    this.#block(root, {});
  }

  runs(): RichText {
    return this.#runs;
  }

  #define(node: Nodes): void {
    if (node.type === 'definition') this.#definitions.set(node.identifier, node);
    if ('children' in node) for (const child of node.children) this.#define(child);
  }

  #say(text: string, marks: Marks): void {
    if (text !== '') this.#runs.push({ text, marks });
  }

  /** Blocks one below the other, with what stands between them. */
  #blocks(parent: Parents, marks: Marks, between = '\n\n'): void {
    const shown = parent.children.filter(({ type }) => type !== 'definition');
    for (const [index, child] of shown.entries()) {
      if (index > 0) this.#say(between, marks);
      this.#block(child, marks);
    }
  }

  #block(node: Nodes, marks: Marks): void {
    if (node.type === 'root') this.#blocks(node, marks);
    else if (node.type === 'heading') this.#inlines(node, { ...marks, bold: true });
    else if (node.type === 'blockquote') this.#blocks(node, { ...marks, quote: true });
    else if (node.type === 'code') this.#say(node.value, { ...marks, pre: node.lang ?? '' });
    else if (node.type === 'list') this.#list(node, marks);
    else if (node.type === 'table') this.#table(node, marks);
    else if (node.type === 'thematicBreak') this.#say('———', marks);
    else if (node.type === 'footnoteDefinition') this.#footnote(node, marks);
    else this.#inline(node, marks);
  }

  #footnote(note: FootnoteDefinition, marks: Marks): void {
    this.#say(`[${note.identifier}] `, marks);
    this.#blocks(note, marks);
  }

  #list(list: List, marks: Marks): void {
    for (const [index, item] of list.children.entries()) {
      if (index > 0) this.#say(list.spread === true ? '\n\n' : '\n', marks);
      const bullet = list.ordered === true ? `${String((list.start ?? 1) + index)}. ` : '• ';
      this.#item(item, bullet, marks);
    }
  }

  #item(item: ListItem, bullet: string, marks: Marks): void {
    const box = item.checked === true ? '☑ ' : '☐ ';
    this.#say(typeof item.checked === 'boolean' ? box : bullet, marks);
    const inside = new MarkdownReader();
    for (const [identifier, definition] of this.#definitions) inside.#definitions.set(identifier, definition);
    inside.#blocks(item, marks, item.spread === true ? '\n\n' : '\n');
    const indent = ' '.repeat(bullet.length);
    // The text of a code block is kept as written, to the last space.
    for (const run of inside.#runs)
      this.#say(run.marks.pre === undefined ? run.text.replaceAll(/\n(?!\n)/gu, `\n${indent}`) : run.text, run.marks);
  }

  /** A line for each row: no channel has tables, and columns do not survive a narrow screen. */
  #table(table: Table, marks: Marks): void {
    for (const [index, row] of table.children.entries()) {
      if (index > 0) this.#say('\n', marks);
      this.#row(row, index === 0 ? { ...marks, bold: true } : marks);
    }
  }

  #row(row: TableRow, marks: Marks): void {
    for (const [index, cell] of row.children.entries()) {
      if (index > 0) this.#say(' | ', marks);
      this.#inlines(cell, marks);
    }
  }

  #inlines(parent: Parents, marks: Marks): void {
    for (const child of parent.children) this.#inline(child, marks);
  }

  #inline(node: Nodes, marks: Marks): void {
    if (node.type === 'text') this.#say(node.value, marks);
    else if (node.type === 'html') this.#say(/^<br\s*\/?>$/iu.test(node.value) ? '\n' : node.value, marks);
    else if (node.type === 'break') this.#say('\n', marks);
    else if (node.type === 'inlineCode') this.#say(node.value, { ...marks, code: true });
    else if (node.type === 'strong') this.#inlines(node, { ...marks, bold: true });
    else if (node.type === 'emphasis') this.#inlines(node, { ...marks, italic: true });
    else if (node.type === 'delete') this.#inlines(node, { ...marks, strike: true });
    else if (node.type === 'footnoteReference') this.#say(`[${node.identifier}]`, marks);
    else this.#linkOrParent(node, marks);
  }

  #linkOrParent(node: Nodes, marks: Marks): void {
    if (node.type === 'image') this.#image(node.alt, node.url, marks);
    else if (node.type === 'imageReference') this.#image(node.alt, this.#definitions.get(node.identifier)?.url ?? '', marks);
    else if (node.type === 'link') this.#link(node, node.url, marks);
    else if (node.type === 'linkReference') this.#link(node, this.#definitions.get(node.identifier)?.url ?? '', marks);
    else if ('children' in node) this.#inlines(node, marks);
  }

  #image(alt: string | null | undefined, url: string, marks: Marks): void {
    const text = alt === null || alt === undefined || alt === '' ? url : alt;
    this.#link({ type: 'link', url, children: [{ type: 'text', value: text }] }, url, marks);
  }

  /**
   * Only what people open: a channel's own schemes (`tg://user`, `javascript:`) would let the text of a model do more
   * than be read.
   */
  #link(parent: Parents, url: string, marks: Marks): void {
    const href = url.replaceAll(/\s/gu, '%20');
    const isLink = href.length <= LINK_MAX_CHARACTERS && linkSchemes.has(URL.parse(href)?.protocol ?? '');
    if (isLink) {
      this.#inlines(parent, { ...marks, link: href });
      return;
    }
    const before = this.#runs.length;
    this.#inlines(parent, marks);
    const label = this.#runs
      .slice(before)
      .map(({ text }) => text)
      .join('');
    if (href !== '' && label !== url && label !== href) this.#say(` (${href})`, marks);
  }
}
