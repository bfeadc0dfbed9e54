import { decodeDocument, documentKind } from './document-kind.ts';
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
    const { pdfPages } = await import('./pdf-pages.ts');
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

const parts: Buffer[] = [];
for await (const part of process.stdin) parts.push(Buffer.from(part));
const input = Buffer.concat(parts.splice(0));
const headEnd = input.indexOf(NEWLINE);
const facts = ReadFacts.parse(JSON.parse(input.subarray(0, headEnd).toString('utf8')));
// A separate copy: PDF.js takes the whole buffer behind the bytes.
await new DocumentReading(facts, Uint8Array.from(input.subarray(headEnd + 1))).read();
process.exit(0);
