import { closeSync, fsync } from 'node:fs';
import { promisify } from 'node:util';
import { quickOpenFolder } from './stat-policy.ts';
import { SharedRun } from './shared-run.ts';

const fsyncInPool = promisify(fsync);

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
  const descriptor = await quickOpenFolder(folder);
  try {
    await fsyncInPool(descriptor);
  } finally {
    // Nothing was written through it: there is nothing to wait for.
    closeSync(descriptor);
  }
}
