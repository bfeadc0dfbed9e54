import { parentPort, workerData } from 'node:worker_threads';
import { decodeDocument, documentKind } from './document-kind.ts';
import { plainPage } from './plain-page.ts';
import { ReadTask, type ReadMessage } from './read-message.ts';

/*
 * The body of a worker thread: reads one document, says what it found, ends. Its starter limits its time and its memory. Of a
 * page it first says the bare words, which takes little, then the readable form, which a hostile page may make impossible.
 */

const { bytes, contentType, url, maxCharacters } = ReadTask.parse(workerData);

function say(title: string, text: string, isPlain = false): void {
  const isCut = text.length > maxCharacters;
  post({ kind: 'text', title: title.slice(0, 300).toWellFormed(), text: text.slice(0, maxCharacters).toWellFormed(), isPlain, isCut });
}

function post(message: ReadMessage): void {
  parentPort?.postMessage(message);
}

async function readPdf(): Promise<void> {
  const { extractText, getDocumentProxy } = await import('unpdf');
  const pdf = await getDocumentProxy(bytes);
  const { text } = await extractText(pdf, { mergePages: true });
  if (text.trim() === '') post({ kind: 'refused', reason: 'The PDF has no text in it (it may be scanned).' });
  else say('', text);
}

async function readHtml(): Promise<void> {
  const html = decodeDocument(contentType, bytes);
  const plain = plainPage(html, url);
  say(plain.title, plain.text, true);
  if (!plain.isSimple) return;
  const { readablePage } = await import('./readable-page.ts');
  const { title, markdown } = readablePage(html, url);
  if (markdown !== '') say(title === '' ? plain.title : title, markdown);
}

switch (documentKind(contentType, bytes)) {
  case 'html':
    await readHtml();
    break;
  case 'pdf':
    await readPdf();
    break;
  case 'text':
    say('', decodeDocument(contentType, bytes));
    break;
  case 'binary':
    post({ kind: 'refused', reason: `It is no text but ${contentType.split(';', 1).join('') || 'binary data'}.` });
}
