import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { RemovedSession } from '@concierge/contract';
import { appendLines, isSystemError, parseJson, type FolderSync } from '@concierge/files';

/**
 * sessions/.deleted.jsonl: what removed sessions had used, so that the usage of past days does not change. Only ever
 * appended to.
 */
export class RemovedSessions {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor(folder: string, folders: FolderSync) {
    this.#folder = folder;
    this.#folders = folders;
  }

  async append(removed: RemovedSession): Promise<void> {
    await appendLines(this.#path, [JSON.stringify(removed)], { path: this.#folder, folders: this.#folders });
  }

  /** As they were written; a removal that was tried again stands there again. */
  async *read(): AsyncGenerator<RemovedSession> {
    const lines = createInterface({ input: createReadStream(this.#path, 'utf8'), crlfDelay: Infinity });
    try {
      for await (const line of lines) {
        const parsed = line === '' ? undefined : parseJson(RemovedSession, line);
        if (parsed?.status === 'ok') yield parsed.value;
      }
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
    } finally {
      lines.close();
    }
  }

  async has(id: string, createdAt: string): Promise<boolean> {
    for await (const removed of this.read()) {
      if (removed.id === id && removed.createdAt === createdAt) return true;
    }
    return false;
  }

  get #path(): string {
    return join(this.#folder, '.deleted.jsonl');
  }
}
