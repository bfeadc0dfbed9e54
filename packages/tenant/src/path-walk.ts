import { constants, type Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, type FileHandle } from 'node:fs/promises';
import { AppError } from '@concierge/contract';
import { invalidPath } from './path-rules.ts';
import { isSystemError } from './system-error.ts';

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Elsewhere than on Linux names are resolved by path: each part is still refused when it is a link, but a swap may win a race. */
const hasProcFd = process.platform === 'linux';

/**
 * A folder held open. Names are resolved against the open descriptor, one part at a time and never through a link, so nothing
 * that happens to the path meanwhile leads out of it (openat(2) by way of /proc/self/fd). Whoever opens one closes it.
 */
export class HeldFolder implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = hasProcFd ? `/proc/self/fd/${String(handle.fd)}` : path;
  }

  /** The folder itself may be any path of ours. @throws AppError not_found */
  static async open(path: string): Promise<HeldFolder> {
    try {
      // Not O_NOFOLLOW: where the data directory lies, and by which links, is the operator's business.
      return new HeldFolder(await open(path, O_RDONLY | O_DIRECTORY), path);
    } catch (error) {
      throw refusal(error);
    }
  }

  /** Down through the names; `create` makes those that are missing. @throws AppError not_found, invalid_request */
  static async walk(root: string, names: readonly string[], options: { readonly create?: boolean } = {}): Promise<HeldFolder> {
    let folder = await HeldFolder.open(root);
    for (const name of names) {
      const parent = folder;
      try {
        if (options.create === true) await parent.make(name);
        folder = await parent.enter(name);
      } finally {
        await parent.close();
      }
    }
    return folder;
  }

  /** The path of a name in this folder, good for any call as long as this is open, provided the call does not follow links. */
  at(name: string): string {
    return `${this.#path}/${name}`;
  }

  async enter(name: string): Promise<HeldFolder> {
    try {
      return new HeldFolder(await open(this.at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW), this.at(name));
    } catch (error) {
      throw refusal(error);
    }
  }

  /** Makes a folder unless there is one. */
  async make(name: string): Promise<void> {
    try {
      await mkdir(this.at(name));
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return;
      throw refusal(error);
    }
    await this.sync();
  }

  /** A regular file with one link, open for reading. @throws AppError not_found, invalid_request */
  async openFile(name: string): Promise<{ readonly handle: FileHandle; readonly stats: Stats }> {
    // O_NONBLOCK: opening a FIFO would otherwise wait for somebody to write to it.
    return this.#openPlain(name, { flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK });
  }

  /** The same for appending; makes the file when there is none. @throws AppError not_found, invalid_request */
  async openForAppend(name: string, mode: number): Promise<FileHandle> {
    return (await this.#openPlain(name, { flags: O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode })).handle;
  }

  /** What a name stands for, links not followed; undefined when there is nothing. */
  async stat(name: string): Promise<Stats | undefined> {
    try {
      return await lstat(this.at(name));
    } catch (error) {
      if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  async names(): Promise<string[]> {
    return readdir(`${this.#path}/`);
  }

  async sync(): Promise<void> {
    if (process.platform !== 'win32') await this.#handle.sync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #openPlain(
    name: string,
    how: { readonly flags: number; readonly mode?: number },
  ): Promise<{ readonly handle: FileHandle; readonly stats: Stats }> {
    let handle: FileHandle;
    try {
      handle = await open(this.at(name), how.flags, how.mode);
    } catch (error) {
      throw refusal(error);
    }
    try {
      const stats = await handle.stat();
      assertPlainFile(stats);
      return { handle, stats };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A hard link may be another name of something that is not the tenant's, so a second link is as good as a symbolic one. */
export function isPlainFile(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 1;
}

export function assertPlainFile(stats: Stats): void {
  if (stats.isDirectory()) throw invalidPath('names a folder');
  if (!isPlainFile(stats)) throw invalidPath('names a link or a special file');
}

function refusal(error: unknown): unknown {
  if (isSystemError(error, 'ENOENT')) return new AppError('not_found', 'There is no such file.', { cause: error });
  if (isSystemError(error, 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO', 'EISDIR'))
    return invalidPath('leads through a link or something that is no folder');
  return error;
}
