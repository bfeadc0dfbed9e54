import { Worker } from 'node:worker_threads';
import { createFiles, replaceFile, type AtomicWrite, type CreatedFiles } from './atomic-file.ts';
import type { WriteError, WriteOrder, WriteOutcome } from './write-thread.ts';

// Beside this file, in the sources as in what is compiled from them.
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './write-thread.ts' : './write-thread.js', import.meta.url);

/** So many files at once are a crowd: a thread is worth its few megabytes then. */
const CROWD = 16;
const QUIET_MS = 30_000;
/** Larger ones are few, and would be copied from thread to thread. */
const TEXT_MAX_CHARACTERS = 64 * 1024;

type TextFiles = Pick<AtomicWrite, 'folder' | 'folders'> & { readonly files: WriteOrder['files'] };
type TextFile = Pick<AtomicWrite, 'folder' | 'folders'> & WriteOrder['files'][number];

/**
 * Makes whole files durable. While there are few, it is done here; a crowd is given to a thread. Each file goes four
 * times through the thread pool, and all that those ways cost would be the event loop's, which has streams and requests
 * to serve: it is a quarter of what a message costs that is only accepted. The thread ends when it has been quiet for a
 * while.
 */
export class FileWriter {
  #thread: WriteThread | undefined;
  #underWay = 0;
  #nextStartMs = -Infinity;

  /** False when the name is taken; on disk either way (see `createFile`). */
  async create({ name, content, ...place }: TextFile): Promise<boolean> {
    const { created, failure } = await this.createInOrder({ ...place, files: [{ name, content }] });
    if (failure !== undefined) throw failure;
    return created[0] === true;
  }

  /** Several of one folder, with one sync of it (see `createFiles`). */
  async createInOrder(files: TextFiles): Promise<CreatedFiles> {
    return this.#counted(files, async () => this.#threadFor(files)?.write(files, false) ?? createFiles(files));
  }

  /** In place of the one that was there, if any (see `replaceFile`). */
  async replace({ name, content, ...place }: TextFile): Promise<void> {
    const files = { ...place, files: [{ name, content }] };
    await this.#counted(files, async () => {
      const thread = this.#threadFor(files);
      if (thread === undefined) return replaceFile({ ...place, name, content });
      const { failure } = await thread.write(files, true);
      if (failure !== undefined) throw failure;
    });
  }

  async #counted<Result>({ files }: TextFiles, write: () => Promise<Result>): Promise<Result> {
    this.#underWay += files.length;
    try {
      if (this.#underWay >= CROWD) this.#startThread();
      return await write();
    } finally {
      this.#underWay -= files.length;
    }
  }

  /** Not again at once when it could not start, or died. */
  #startThread(): void {
    if (this.#thread !== undefined || performance.now() < this.#nextStartMs) return;
    this.#nextStartMs = performance.now() + QUIET_MS;
    try {
      this.#thread = new WriteThread(() => (this.#thread = undefined));
    } catch {
      // The system has no more threads to give; what can be written is written here.
    }
  }

  #threadFor({ files }: TextFiles): WriteThread | undefined {
    return this.#thread?.isReady === true && files.every(({ content }) => content.length <= TEXT_MAX_CHARACTERS) ? this.#thread : undefined;
  }
}

/** One that has ended is not used again. */
class WriteThread {
  readonly #thread: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<CreatedFiles>>();
  #orders: WriteOrder[] = [];
  #count = 0;
  #quiet: NodeJS.Timeout | undefined;
  /** Until then, writing here is faster. */
  isReady = false;

  constructor(onEnd: () => void) {
    this.#thread = new Worker(threadFile, { env: {} });
    this.#thread.unref();
    this.#thread.on('message', (outcomes: readonly WriteOutcome[]) => {
      this.isReady = true;
      for (const outcome of outcomes) this.#settle(outcome);
      if (this.#waiting.size === 0) this.#rest();
    });
    let reason: unknown;
    this.#thread.once('error', (error: unknown) => (reason = error));
    this.#thread.once('exit', () => {
      onEnd();
      // Whether they were written is unknown: as with any error of a disk.
      const error = Object.assign(new Error('the thread that writes files has ended', { cause: reason }), { code: 'EIO' });
      for (const { reject } of this.#waiting.values()) reject(error);
    });
  }

  /** As `createFiles`; where they may replace others, as `replaceFile`. */
  async write({ folder, files }: TextFiles, mayReplace: boolean): Promise<CreatedFiles> {
    const outcome = Promise.withResolvers<CreatedFiles>();
    const id = (this.#count += 1);
    if (this.#waiting.size === 0) this.#wake();
    this.#waiting.set(id, outcome);
    this.#orders.push({ id, mayReplace, folder, files });
    if (this.#orders.length === 1) setImmediate(() => this.#send());
    return outcome.promise;
  }

  /** All that came in one turn of the event loop together. */
  #send(): void {
    this.#thread.postMessage(this.#orders);
    this.#orders = [];
  }

  #settle({ id, created, failure }: WriteOutcome): void {
    const outcome = this.#waiting.get(id);
    this.#waiting.delete(id);
    outcome?.resolve({ created, failure: failure && toWriteError(failure) });
  }

  /** A caller waits for it: the process does not end meanwhile. */
  #wake(): void {
    clearTimeout(this.#quiet);
    this.#thread.ref();
  }

  #rest(): void {
    this.#thread.unref();
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      this.isReady = false;
      void this.#thread.terminate();
    }, QUIET_MS).unref();
  }
}

function toWriteError({ message, ...facts }: WriteError): Error {
  return Object.assign(new Error(message), facts);
}
