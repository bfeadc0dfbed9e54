import { plainPage } from './plain-page.ts';
import { ReadFacts, type ReadMessage } from './read-message.ts';

/*
 * The body of a process that reads one document: facts and bytes come in on stdin, each line that goes out on stdout is
 * a `ReadMessage`. Its starter (`read-in-process.ts`) limits its time and its memory. Text is emitted as early as
 * possible: the bare words of a page before its readable form, the pages of a PDF so far. A process that is killed in
 * the middle has then emitted some text.
 */

/** The pages of a PDF so far are emitted again after this time. */
const SAY_EVERY_MS = 1000;
const NEWLINE = 0x0a;
const META_BYTES = 1024;
const metaElement = /<meta\s([^<>]*)>/giu;
const charsetName = /charset\s*=\s*(?:["']\s*)?([\w:.-]+)/iu;
const textTypes = /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-yaml|javascript|ld\+json|x-ndjson|toml|sql)$)/u;
const namelessTypes: ReadonlySet<string> = new Set(['', 'application/octet-stream', 'binary/octet-stream', 'unknown/unknown']);

type DocumentKind = 'html' | 'pdf' | 'text' | 'binary';

class DocumentReading {
  readonly #facts: ReadFacts;
  readonly #bytes: Uint8Array;

  constructor(facts: ReadFacts, bytes: Uint8Array) {
    this.#facts = facts;
    this.#bytes = bytes;
  }

  async read(): Promise<void> {
    const { contentType } = this.#facts;
    switch (documentKind(contentType, this.#bytes)) {
      case 'html':
        await this.#readHtml();
        break;
      case 'pdf':
        await this.#readPdf();
        break;
      case 'text':
        await this.#say('', decodeDocument(contentType, this.#bytes));
        break;
      case 'binary':
        await write({ kind: 'refused', reason: `It is no text but ${contentType.split(';', 1).join('') || 'binary data'}.` });
    }
  }

  async #readHtml(): Promise<void> {
    const { contentType, url } = this.#facts;
    const html = decodeDocument(contentType, this.#bytes);
    const plain = plainPage(html, url);
    await this.#say(plain.title, plain.text, { isPlain: true });
    if (!plain.isSimple) return;
    const { readablePage } = await import('./readable-page.ts');
    const { title, markdown } = readablePage(html, url);
    if (markdown !== '') await this.#say(title === '' ? plain.title : title, markdown);
  }

  async #readPdf(): Promise<void> {
    let text = '';
    let saidAtMs = Date.now();
    for await (const page of pdfPages(this.#bytes)) {
      text += text === '' ? page : `\n${page}`;
      if (text.length > this.#facts.maxCharacters) break;
      if (Date.now() - saidAtMs < SAY_EVERY_MS || text.trim() === '') continue;
      await this.#say('', text, { isCut: true });
      saidAtMs = Date.now();
    }
    if (text.trim() === '') await write({ kind: 'refused', reason: 'The PDF has no text in it (it may be scanned).' });
    else await this.#say('', text);
  }

  async #say(title: string, text: string, { isPlain = false, isCut = false } = {}): Promise<void> {
    const { maxCharacters } = this.#facts;
    await write({
      kind: 'text',
      title: title.slice(0, 300).toWellFormed(),
      text: text.slice(0, maxCharacters).toWellFormed(),
      isPlain,
      isCut: isCut || text.length > maxCharacters,
    });
  }
}

/** Resolves when the starter can have read the message: what comes next may end the process. */
async function write(message: ReadMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.stdout.write(`${JSON.stringify(message)}\n`, () => {
    resolve();
  });
  await promise;
}

/** Decides how to read a body: by the server's content type, and by the bytes where there is none. */
function documentKind(contentType: string, bytes: Uint8Array): DocumentKind {
  const type = contentType.split(';', 1).join('').trim().toLowerCase();
  const start = Buffer.from(bytes.subarray(0, META_BYTES)).toString('latin1');
  if (type === 'application/pdf' || start.startsWith('%PDF-')) return 'pdf';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (textTypes.test(type)) return isBinary(start) ? 'binary' : 'text';
  return namelessTypes.has(type) ? sniffed(start) : 'binary';
}

function sniffed(start: string): DocumentKind {
  if (isBinary(start)) return 'binary';
  return /^\s*<(?:!doctype html|html|head|body)\b/iu.test(start) ? 'html' : 'text';
}

/** UTF-16 has zeros, too, but begins with a byte order mark. */
function isBinary(start: string): boolean {
  return start.includes('\u0000') && !start.startsWith('\u00ff\u00fe') && !start.startsWith('\u00fe\u00ff');
}

/**
 * A body's text. What counts, in this order: a byte order mark, the header's charset, the page's own; UTF-8, and where
 * the bytes are none, the charset of old pages that declare none.
 */
function decodeDocument(contentType: string, bytes: Uint8Array): string {
  const header = charsetName.exec(contentType)?.[1];
  const head = Buffer.from(bytes.subarray(0, META_BYTES)).toString('latin1');
  const meta = head
    .matchAll(metaElement)
    .map(([, attributes = '']) => charsetName.exec(attributes)?.[1])
    .find((name) => name !== undefined);
  const decoder = byteOrderMark(bytes) ?? readDecoder(header) ?? readDecoder(meta);
  if (decoder !== undefined) return decoder.decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

function byteOrderMark(bytes: Uint8Array): InstanceType<typeof TextDecoder> | undefined {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return new TextDecoder('utf-8');
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le');
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : undefined;
}

/** undefined for an unknown charset. */
function readDecoder(charset: string | undefined): InstanceType<typeof TextDecoder> | undefined {
  if (charset === undefined) return undefined;
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

/**
 * The text of each page, one page in memory at a time. A page that cannot be read is left out.
 * @throws what PDF.js throws of a document that it cannot open
 */
async function* pdfPages(bytes: Uint8Array): AsyncGenerator<string, void, undefined> {
  const { getDocumentProxy } = await import('unpdf');
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

const parts: Buffer[] = [];
for await (const part of process.stdin) parts.push(Buffer.from(part));
const input = Buffer.concat(parts.splice(0));
const headEnd = input.indexOf(NEWLINE);
const facts = ReadFacts.parse(JSON.parse(input.subarray(0, headEnd).toString('utf8')));
// A separate copy: PDF.js takes the whole buffer behind the bytes.
await new DocumentReading(facts, Uint8Array.from(input.subarray(headEnd + 1))).read();
process.exit(0);
