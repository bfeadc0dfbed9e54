import { Worker } from 'node:worker_threads';
import { ReadMessage, type ReadTask } from './read-message.ts';
import { Slots } from './slots.ts';
import { UnreadableError } from './unreadable-error.ts';

const TIMEOUT_MS = 8000;
const MEMORY_MB = 192;
/** Threads at once; the others wait. */
const CONCURRENCY = 2;

// Beside this file, in the sources as in what is compiled from them.
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './read-thread.ts' : './read-thread.js', import.meta.url);

export interface ReadDocument {
  /** Empty where there is none. */
  readonly title: string;
  readonly text: string;
  /** Only the words of a page: it was too large or too deep to be laid out in time. */
  readonly isPlain: boolean;
  /** There was more text than is kept. */
  readonly isCut: boolean;
}

/** Texts of documents, read in threads with limited time and memory: a hostile page costs its own thread, never the event loop. */
export class DocumentReader {
  readonly #threads = new Slots(CONCURRENCY);

  /** @throws UnreadableError, or the signal's reason */
  async read(task: ReadTask, signal: AbortSignal): Promise<ReadDocument> {
    return this.#threads.run(async () => {
      signal.throwIfAborted();
      const last = await lastWord(task, signal);
      signal.throwIfAborted();
      if (last === undefined) throw new UnreadableError('It could not be read within the time and memory that one page gets.');
      if (last.kind === 'refused') throw new UnreadableError(last.reason);
      const { title, text, isPlain, isCut } = last;
      return { title, text, isPlain, isCut };
    });
  }
}

/** What the thread said last before it ended, failed, or was ended. */
async function lastWord(task: ReadTask, signal: AbortSignal): Promise<ReadMessage | undefined> {
  const ended = Promise.withResolvers<void>();
  const thread = new Worker(threadFile, {
    workerData: { ...task, bytes: Uint8Array.from(task.bytes) },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: 32 },
    env: {},
    stdout: true,
    stderr: true,
  });
  let last: ReadMessage | undefined;
  thread.on('message', (message: unknown) => {
    last = ReadMessage.parse(message);
  });
  const end = (): void => {
    ended.resolve();
  };
  thread.once('error', end);
  thread.once('exit', end);
  const timer = setTimeout(end, TIMEOUT_MS);
  signal.addEventListener('abort', end, { once: true });
  try {
    await ended.promise;
    return last;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    await thread.terminate();
  }
}
