import { Worker } from 'node:worker_threads';
import type { Log } from '@concierge/runtime';
import { Slots } from '@concierge/web';

const TIMEOUT_MS = 20_000;
const MEMORY_MB = 192;
/** Far more than a model is given of one attachment; what there is of it stays with the upload. */
const TEXT_MAX_CHARACTERS = 2_000_000;
/** Threads at once; the others wait. */
const CONCURRENCY = 2;

// Beside this file, in the sources as in what is compiled from them.
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './pdf-thread.ts' : './pdf-thread.js', import.meta.url);

/** Text of PDFs, read in threads with limited time and memory: a hostile file costs its own thread, never the event loop. */
export class PdfTexts {
  readonly #log: Log;
  readonly #threads = new Slots(CONCURRENCY);

  constructor(log: Log) {
    this.#log = log;
  }

  /** The text, at most two million characters of it; empty when there is none, or it cannot be read until the signal. */
  async read(bytes: Uint8Array, signal?: AbortSignal): Promise<string> {
    try {
      return await this.#threads.run(async () => readInThread(bytes, signal));
    } catch (error) {
      this.#log.info({ err: error, bytes: bytes.length }, 'the text of a PDF could not be read');
      return '';
    }
  }
}

async function readInThread(bytes: Uint8Array, signal: AbortSignal | undefined): Promise<string> {
  signal?.throwIfAborted();
  const thread = new Worker(threadFile, {
    workerData: { bytes: Uint8Array.from(bytes), maxCharacters: TEXT_MAX_CHARACTERS },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: 32 },
    env: {},
    stdout: true,
    stderr: true,
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const timer = setTimeout(() => {
    reject(new Error(`not finished after ${String(TIMEOUT_MS)} ms`));
  }, TIMEOUT_MS);
  const stop = (): void => {
    reject(new Error('not waited for any longer'));
  };
  signal?.addEventListener('abort', stop);
  thread.once('message', (text: unknown) => {
    resolve(typeof text === 'string' ? text : '');
  });
  thread.once('error', reject);
  thread.once('exit', () => {
    reject(new Error('ended without an answer'));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
    await thread.terminate();
  }
}
