import { Parser } from 'htmlparser2';

/** Without these elements a page's layout is not computed: its DOM would take more time than a reader waits for it. */
const DEPTH_MAX = 256;
const ELEMENTS_MAX = 40_000;
const CHARACTERS_MAX = 3_000_000;
/** The parser keeps what is open in a list that it searches and shifts: deeper than this, tags are only taken away. */
const DEPTH_TAGS_COUNT_TO = 2000;
const CHUNK_CHARACTERS = 16_384;

const unseen: ReadonlySet<string> = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'object', 'head']);
const inline: ReadonlySet<string> = new Set(
  'a abbr b bdi bdo cite code data dfn em font i kbd mark q s samp small span strong sub sup time u var wbr'.split(' '),
);

export interface PlainPage {
  readonly title: string;
  /** All that is to be read, in its order, links as Markdown. */
  readonly text: string;
  /** Small and flat enough for what takes more than linear time. */
  readonly isSimple: boolean;
}

/** The words of a page by one pass over its tags: linear, whatever the page. */
export function plainPage(html: string, url: string): PlainPage {
  const reading = new PlainReading(url);
  const parser = new Parser(reading, { decodeEntities: true });
  let read = 0;
  while (read < html.length && reading.deepest <= DEPTH_TAGS_COUNT_TO) {
    parser.write(html.slice(read, read + CHUNK_CHARACTERS));
    read += CHUNK_CHARACTERS;
  }
  parser.end();
  const rest = html
    .slice(read)
    .replaceAll(/<[^<>]*>/gu, ' ')
    .replaceAll(/\s+/gu, ' ');
  const isSimple = reading.deepest <= DEPTH_MAX && reading.elements <= ELEMENTS_MAX && html.length <= CHARACTERS_MAX;
  return { title: squeeze(reading.title), text: `${reading.text()}\n${rest}`.trim(), isSimple };
}

class PlainReading {
  elements = 0;
  deepest = 0;
  title = '';
  readonly #url: string;
  readonly #parts: string[] = [];
  #depth = 0;
  #unseen = 0;
  #isInTitle = false;
  #link: string | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    this.elements += 1;
    this.#depth += 1;
    this.deepest = Math.max(this.deepest, this.#depth);
    if (name === 'title' && this.title === '') this.#isInTitle = true;
    if (unseen.has(name)) this.#unseen += 1;
    if (name === 'td' || name === 'th') this.#parts.push(' ');
    else if (!inline.has(name)) this.#parts.push('\n');
    if (name === 'a' && this.#unseen === 0) this.#openLink(attributes['href']);
  }

  onclosetag(name: string): void {
    this.#depth -= 1;
    if (name === 'title') this.#isInTitle = false;
    if (unseen.has(name)) this.#unseen -= 1;
    if (name === 'a') this.#closeLink();
    else if (!inline.has(name) && name !== 'td' && name !== 'th') this.#parts.push('\n');
  }

  ontext(text: string): void {
    if (this.#isInTitle) this.title += text;
    else if (this.#unseen === 0) this.#parts.push(text.replaceAll(/\s+/gu, ' '));
  }

  text(): string {
    return this.#parts
      .join('')
      .split('\n')
      .map((line) => line.trim())
      .join('\n')
      .replaceAll(/\n{3,}/gu, '\n\n')
      .trim();
  }

  #openLink(href: string | undefined): void {
    this.#closeLink();
    this.#link = absoluteLink(href, this.#url);
    if (this.#link !== undefined) this.#parts.push('[');
  }

  #closeLink(): void {
    if (this.#link !== undefined) this.#parts.push(`](${this.#link})`);
    this.#link = undefined;
  }
}

function squeeze(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim();
}

const LINK_MAX_CHARACTERS = 2000;

/** Where a link leads, ready for Markdown; undefined for what is no place on the web, such as `javascript:`. */
export function absoluteLink(href: string | null | undefined, base: string): string | undefined {
  if (href === undefined || href === null || href.trim() === '' || href.startsWith('#')) return undefined;
  const url = URL.parse(href, base);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.href.length > LINK_MAX_CHARACTERS) return undefined;
  return url.href.replaceAll('(', '%28').replaceAll(')', '%29');
}
