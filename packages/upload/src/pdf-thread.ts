import { parentPort, workerData } from 'node:worker_threads';
import { extractText, getDocumentProxy } from 'unpdf';
import { z } from 'zod';

/* The body of a worker thread: reads one PDF, posts its text, ends. Its starter limits its time and its memory. */

const { bytes, maxCharacters } = z.object({ bytes: z.instanceof(Uint8Array), maxCharacters: z.int() }).parse(workerData);

const pdf = await getDocumentProxy(bytes);
const { text } = await extractText(pdf, { mergePages: true });
parentPort?.postMessage(text.slice(0, maxCharacters).toWellFormed());
