import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { isSystemError, keepFolders, lstatIfThere, makeStoreFolder, type FolderSync } from '@concierge/files';

const namePattern = /^m_[0-9a-f]{32}$/u;
/** A folder of a lane goes when it is empty, perhaps right before another process writes a message into it. */
export const attemptsMax = 10;

/** tenants/<id>/outbox, whose folders are made when they are written to. */
export class OutboxFolder {
  readonly path: string;
  readonly folders: FolderSync;

  constructor({ folder, folders }: { readonly folder: string; readonly folders: FolderSync }) {
    this.path = folder;
    this.folders = folders;
  }

  async inFolder<Result>(folder: string, write: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      await this.makeFolder(folder);
      try {
        return await write();
      } catch (error) {
        if (!isSystemError(error, 'ENOENT') || attempt === attemptsMax) throw error;
      }
    }
  }

  /** The folder's own name must last as long as what is in it. */
  async makeFolder(folder: string): Promise<void> {
    await keepFolders(await makeStoreFolder(folder, { store: this.path, mode: 0o700 }), this.folders);
  }

  toWrite(folder: string, name: string): { folder: string; name: string; folders: FolderSync } {
    return { folder, name, folders: this.folders };
  }
}

export function isMessageId(text: string): boolean {
  return namePattern.test(text);
}

export function idsAmong(names: readonly string[], ending: string): string[] {
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, -ending.length))
    .filter(isMessageId);
}

export async function isThere(path: string): Promise<boolean> {
  return (await lstatIfThere(path)) !== undefined;
}

/** False when there is no such file: it is not made. On disk when it returns. */
export async function appendToExisting(path: string, lines: readonly string[]): Promise<boolean> {
  try {
    const handle = await open(path, constants.O_APPEND | constants.O_WRONLY);
    try {
      // As `appendLines`: one write, that a torn line before it cannot swallow.
      await handle.appendFile(`\n${lines.join('\n')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}
