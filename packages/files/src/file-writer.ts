import { Worker } from 'node:worker_threads';
import { createFile, replaceFile, type AtomicWrite } from './atomic-file.ts';
import type { WriteError, WriteOrder, WriteOutcome } from './write-thread.ts';

// Beside this file, in the sources as in what is compiled from them.
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './write-thread.ts' : './write-thread.js', import.meta.url);

/** So many files at once are a crowd: a thread is worth its few megabytes then. */
const CROWD = 16;
const QUIET_MS = 30_000;
/** Larger ones are few, and would be copied from thread to thread. */
const TEXT_MAX_CHARACTERS = 64 * 1024;

type TextFile = Pick<AtomicWrite, 'folder' | 'name' | 'folders'> & { readonly content: string };

/**
 * Makes whole files durable. While there are few, it is done here; a crowd is given to a thread. Each file goes four times through the thread pool, and all
 * that those ways cost would be the event loop's, which has streams and requests to serve: it is a quarter of what a message costs that is only accepted.
 * The thread ends when it has been quiet for a while.
 */
export class FileWriter {
  #thread: WriteThread | undefined;
  #underWay = 0;
  #nextStartMs = -Infinity;

  /** False when the name is taken; on disk either way (see `createFile`). */
  async create(file: TextFile): Promise<boolean> {
    return this.#counted(async () => this.#threadFor(file)?.write(file, false) ?? createFile(file));
  }

  /** In place of the one that was there, if any (see `replaceFile`). */
  async replace(file: TextFile): Promise<void> {
    await this.#counted(async () => this.#threadFor(file)?.write(file, true) ?? replaceFile(file));
  }

  async #counted<Result>(write: () => Promise<Result>): Promise<Result> {
    this.#underWay += 1;
    try {
      if (this.#underWay >= CROWD) this.#startThread();
      return await write();
    } finally {
      this.#underWay -= 1;
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

  #threadFor({ content }: TextFile): WriteThread | undefined {
    return this.#thread?.isReady === true && content.length <= TEXT_MAX_CHARACTERS ? this.#thread : undefined;
  }
}

/** One that has ended is not used again. */
class WriteThread {
  readonly #thread: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<boolean>>();
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
      // Whether they were written, nobody knows: as with any error of a disk.
      const error = Object.assign(new Error('the thread that writes files has ended', { cause: reason }), { code: 'EIO' });
      for (const { reject } of this.#waiting.values()) reject(error);
    });
  }

  /** As `createFile`, with the errors that it throws; true when it may replace another. */
  async write({ folder, name, content }: TextFile, mayReplace: boolean): Promise<boolean> {
    const outcome = Promise.withResolvers<boolean>();
    const id = (this.#count += 1);
    if (this.#waiting.size === 0) this.#wake();
    this.#waiting.set(id, outcome);
    this.#orders.push({ id, mayReplace, folder, name, content });
    if (this.#orders.length === 1) setImmediate(() => this.#send());
    return outcome.promise;
  }

  /** All that came in one turn of the event loop together. */
  #send(): void {
    this.#thread.postMessage(this.#orders);
    this.#orders = [];
  }

  #settle({ id, result }: WriteOutcome): void {
    const outcome = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (typeof result === 'boolean') outcome?.resolve(result);
    else outcome?.reject(errorOf(result));
  }

  /** Somebody waits for it: the process does not end meanwhile. */
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

function errorOf({ message, ...facts }: WriteError): Error {
  return Object.assign(new Error(message), facts);
}
