import { closeSync, fsync, open, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { lookQuickly } from './stat-cache.ts';

/**
 * A task that many wait for at once. At most one run is in flight, and all callers that ask meanwhile share the next
 * one: what a caller gets was begun after the caller asked.
 */
export class SharedRun<T> {
  readonly #task: () => Promise<T>;
  #running: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(task: () => Promise<T>) {
    this.#task = task;
  }

  get isIdle(): boolean {
    return this.#running === undefined && this.#next === undefined;
  }

  async run(): Promise<T> {
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#start();
    const ended = this.#running.then(
      () => undefined,
      () => undefined,
    );
    this.#next = ended.then(async () => {
      this.#next = undefined;
      return this.#start();
    });
    return this.#next;
  }

  async #start(): Promise<T> {
    const running = this.#task();
    this.#running = running;
    try {
      return await running;
    } finally {
      if (this.#running === running) this.#running = undefined;
    }
  }
}

const [openInPool, fsyncInPool] = [promisify(open), promisify(fsync)];

/**
 * Makes the names in a folder durable, for many writers at once (group commit). At most one fsync per folder is in
 * flight; every caller that arrives meanwhile shares the next one. Under load this turns one fsync per message into one
 * per batch.
 */
export class FolderSync {
  readonly #runs = new Map<string, SharedRun<void>>();

  /**
   * Resolves when every name that was in the folder at the time of the call is on disk. Rejects as `open` and `fsync`
   * do.
   */
  async sync(folder: string): Promise<void> {
    let run = this.#runs.get(folder);
    if (run === undefined) {
      run = new SharedRun(async () => {
        await syncFolder(folder);
      });
      this.#runs.set(folder, run);
    }
    try {
      await run.run();
    } finally {
      if (run.isIdle && this.#runs.get(folder) === run) this.#runs.delete(folder);
    }
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders; its file systems keep names in order by themselves.
  if (process.platform === 'win32') return;
  const descriptor = await lookQuickly(
    () => openSync(folder, 'r'),
    async () => openInPool(folder, 'r'),
  );
  try {
    await fsyncInPool(descriptor);
  } finally {
    // Nothing was written through it: there is nothing to wait for.
    closeSync(descriptor);
  }
}
