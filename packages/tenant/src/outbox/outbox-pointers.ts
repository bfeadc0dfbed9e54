import { hash } from 'node:crypto';
import { appendFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ignoreMissing, makeStoreFolder, namesIn, readIfThere } from '@concierge/files';

/**
 * Small files that lead from something else to messages: from the provider's own id, from a turn. A line each, found by
 * the hash of what leads there. Not flushed: one that a power failure takes away costs a receipt, or a line in a view,
 * and never a message.
 */
export class OutboxPointers {
  readonly #folder: string;
  readonly #store: string;

  /** `folder`: in `store`, the outbox. */
  constructor(folder: string, store: string) {
    this.#folder = folder;
    this.#store = store;
  }

  async add(key: string, line: string): Promise<void> {
    const { folder, name } = this.#place(key);
    await makeStoreFolder(folder, { store: this.#store, mode: 0o700 });
    await appendFile(join(folder, name), `${line}\n`, { mode: 0o600 });
  }

  /** In the order in which they were added, each once. */
  async find(key: string): Promise<string[]> {
    const { folder, name } = this.#place(key);
    const lines = ((await readIfThere(join(folder, name))) ?? '').split('\n').slice(0, -1);
    return [...new Set(lines)];
  }

  /** Removes pointers that nothing was added to since then. */
  async removeBefore(ms: number): Promise<void> {
    for (const shelf of await namesIn(this.#folder)) {
      for (const name of await namesIn(join(this.#folder, shelf))) {
        const path = join(this.#folder, shelf, name);
        const facts = await stat(path).catch(() => undefined);
        if (facts !== undefined && facts.mtimeMs < ms) await ignoreMissing(unlink(path));
      }
    }
  }

  #place(key: string): { readonly folder: string; readonly name: string } {
    const digest = hash('sha256', key);
    return { folder: join(this.#folder, digest.slice(0, 2)), name: digest.slice(2, 34) };
  }
}
