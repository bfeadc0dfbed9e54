import { constants, type Stats } from 'node:fs';
import { chmod, lchown, mkdir, open, readdir, type FileHandle } from 'node:fs/promises';
import { AppError, limits } from '@concierge/contract';
import { lstatIfThere } from './stat-cache.ts';
import { isSystemError } from './system-error.ts';
import { temporaryPrefix } from './file-steps.ts';

const maxSegments = 32;
const maxPathBytes = 4096;

/** Two names that some file system, or some reader, takes for one. */
export function foldName(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}

/** Why a single name is refused; undefined when it is fine (reliability, "Paths"). */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'has an empty part';
  if (name === '.' || name === '..') return 'must not contain . or ..';
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f-\u009f]/u.test(name)) return 'must not contain control characters';
  if (/[\\/]/u.test(name)) return 'must not contain a backslash';
  if (!name.isWellFormed()) return 'is not valid Unicode';
  if (Buffer.byteLength(name) > limits.pathSegmentMaxBytes) return `has a part longer than ${String(limits.pathSegmentMaxBytes)} bytes`;
  if (name !== name.normalize('NFKC')) return 'has characters with a plainer spelling (NFKC)';
  if (name.startsWith(temporaryPrefix)) return `must not have a part that begins with ${temporaryPrefix}`;
  return undefined;
}

/** Splits a relative path into names that each passed the rules. @throws AppError invalid_request */
export function parsePath(path: string): readonly [string, ...string[]] {
  const [first = '', ...rest] = path.split('/');
  const segments: [string, ...string[]] = [first, ...rest];
  if (Buffer.byteLength(path) > maxPathBytes || segments.length > maxSegments) throw invalidPath('is too long');
  for (const segment of segments) {
    const problem = nameProblem(segment);
    if (problem !== undefined) throw invalidPath(problem);
  }
  return segments;
}

export function invalidPath(problem: string): AppError {
  return new AppError('invalid_request', `The path ${problem}.`, { errors: [{ path: 'path', message: problem }] });
}

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * Elsewhere than on Linux names are resolved by path: each part is still refused when it is a link, but a swap may win
 * a race.
 */
const hasProcFd = process.platform === 'linux';

/**
 * Linux: a descriptor that only names what it was opened for, which needs no permission on it. Node has no constant for
 * it.
 */
const O_PATH = 0o10000000;

/** Writers replace files whole, so a reader may come to the old one's name and open the new one: it looks again. */
const replacedMax = 10;

export interface PlainFile {
  readonly bytes: Buffer;
  readonly mtimeMs: number;
}

export interface OpenFile {
  readonly handle: FileHandle;
  readonly stats: Stats;
}

/**
 * A folder held open. Names are resolved against the open descriptor, one part at a time and never through a link, so
 * nothing that happens to the path meanwhile leads out of it (openat(2) by way of /proc/self/fd). The opener closes it.
 */
export class FolderHandle implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = hasProcFd ? `/proc/self/fd/${String(handle.fd)}` : path;
  }

  /** The folder itself may be any path of ours. @throws AppError not_found */
  static async open(path: string): Promise<FolderHandle> {
    try {
      // Not O_NOFOLLOW: where the data directory lies, and by which links, is the operator's business.
      return new FolderHandle(await open(path, O_RDONLY | O_DIRECTORY), path);
    } catch (error) {
      throw refusal(error);
    }
  }

  /** Down through the names; `create` makes those that are missing. @throws AppError not_found, invalid_request */
  static async walk(root: string, names: readonly string[], options: { readonly create?: boolean } = {}): Promise<FolderHandle> {
    let folder = await FolderHandle.open(root);
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

  /**
   * The path of a name in this folder, good for any call as long as this is open, provided the call does not follow
   * links.
   */
  at(name: string): string {
    return `${this.#path}/${name}`;
  }

  async enter(name: string): Promise<FolderHandle> {
    try {
      return new FolderHandle(await open(this.at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW), this.at(name));
    } catch (error) {
      throw refusal(error);
    }
  }

  /**
   * As `enter`, for a folder that is about to be removed: a tenant that shares the service's user id cannot keep it by
   * taking the permissions away. The folder is opened first and changed through its descriptor, so a link by this name
   * changes nothing behind it.
   */
  async enterToRemove(name: string): Promise<FolderHandle> {
    if (hasProcFd && process.getuid?.() !== 0) {
      const named = await open(this.at(name), O_PATH | O_DIRECTORY | O_NOFOLLOW).catch((error: unknown) => {
        throw refusal(error);
      });
      try {
        await chmod(`/proc/self/fd/${String(named.fd)}`, 0o700);
      } finally {
        await named.close();
      }
    }
    return this.enter(name);
  }

  /** Makes a folder unless there is one. */
  async make(name: string): Promise<void> {
    try {
      await mkdir(this.at(name));
      await this.give(name);
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return;
      throw refusal(error);
    }
    await this.sync();
  }

  /** The content of a regular file with one link. @throws AppError not_found, invalid_request, too_large */
  async readFile(name: string, maxBytes: number): Promise<PlainFile> {
    const { handle, stats } = await this.openFile(name);
    try {
      if (stats.size > maxBytes) throw tooLarge(maxBytes);
      return { bytes: await readBounded(handle, stats.size, maxBytes), mtimeMs: stats.mtimeMs };
    } finally {
      await handle.close();
    }
  }

  /** A regular file with one link, open for reading. @throws AppError not_found, invalid_request */
  async openFile(name: string): Promise<OpenFile> {
    for (let attempt = 0; attempt < replacedMax; attempt += 1) {
      const before = await this.stat(name);
      if (before === undefined) throw new AppError('not_found', 'There is no such file.');
      const opened = await this.#openSame(name, before, O_RDONLY);
      if (opened !== undefined) return opened;
    }
    throw replacedTooOften();
  }

  /**
   * A regular file of a folder that only the service writes to, where a second name is the service's own.
   * @throws AppError not_found, invalid_request
   */
  async openOwnFile(name: string): Promise<OpenFile> {
    let handle: FileHandle;
    try {
      handle = await open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      throw refusal(error);
    }
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, stats };
    await handle.close();
    throw invalidPath('names a link or a special file');
  }

  /** As `openFile`, for appending; makes the file when there is none. @throws AppError invalid_request */
  async openForAppend(name: string, mode: number): Promise<FileHandle> {
    for (let attempt = 0; attempt < replacedMax; attempt += 1) {
      const before = await this.stat(name);
      const opened =
        before === undefined ? await this.#createNew(name, mode) : (await this.#openSame(name, before, O_WRONLY | O_APPEND))?.handle;
      if (opened !== undefined) return opened;
    }
    throw replacedTooOften();
  }

  /** What a name stands for, links not followed; undefined when there is nothing. */
  async stat(name: string): Promise<Stats | undefined> {
    try {
      return await lstatIfThere(this.at(name));
    } catch (error) {
      if (isSystemError(error, 'ENOTDIR')) return undefined;
      throw error;
    }
  }

  async names(): Promise<string[]> {
    return readdir(`${this.#path}/`);
  }

  /**
   * What root makes in a folder gets the folder's owner, so that the tenant's sandbox, which is never root, can change
   * it. Any other user's files have the right owner from the start.
   */
  async give(name: string): Promise<void> {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = await this.#handle.stat();
    if (uid !== 0) await lchown(this.at(name), uid, gid);
  }

  async sync(): Promise<void> {
    if (process.platform !== 'win32') await this.#handle.sync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /**
   * undefined when it has been replaced since `before`. Looking at the open file alone is not enough: the second name
   * of a hard link can be taken away between the opening and the look. What was a plain file by this name before, and
   * is the same file now, was never another user's.
   */
  async #openSame(name: string, before: Stats, flags: number): Promise<OpenFile | undefined> {
    assertPlainFile(before);
    let handle: FileHandle;
    try {
      // O_NONBLOCK: if it has become a FIFO, opening it would wait for a writer.
      handle = await open(this.at(name), flags | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      throw refusal(error);
    }
    try {
      const stats = await handle.stat();
      if (stats.ino === before.ino && stats.dev === before.dev) {
        assertPlainFile(stats);
        return { handle, stats };
      }
    } catch (error) {
      await handle.close();
      throw error;
    }
    await handle.close();
    return undefined;
  }

  /** undefined when another process has made it just now. */
  async #createNew(name: string, mode: number): Promise<FileHandle | undefined> {
    try {
      const handle = await open(this.at(name), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
      await this.give(name);
      return handle;
    } catch (error) {
      if (isSystemError(error, 'EEXIST')) return undefined;
      throw refusal(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * A hard link may be another name of something that is not the tenant's, so a second name is as bad as a symbolic link.
 * A file without any name was replaced just now, and is still what was there.
 */
export function isPlainFile(stats: Stats): boolean {
  return stats.isFile() && stats.nlink <= 1;
}

export function assertPlainFile(stats: Stats): void {
  if (stats.isDirectory()) throw invalidPath('names a folder');
  if (!isPlainFile(stats)) throw invalidPath('names a link or a special file');
}

function replacedTooOften(): AppError {
  return new AppError('conflict', 'The file is being replaced again and again.');
}

function refusal(error: unknown): unknown {
  if (isSystemError(error, 'ENOENT')) return new AppError('not_found', 'There is no such file.', { cause: error });
  if (isSystemError(error, 'ENOTDIR', 'ELOOP', 'EMLINK', 'ENXIO', 'EISDIR'))
    return invalidPath('leads through a link or something that is no folder');
  return error;
}

/** Reads to the end even when the file grew since it was measured, but never more than the limit. */
async function readBounded(handle: FileHandle, expected: number, maxBytes: number): Promise<Buffer> {
  let buffer = Buffer.allocUnsafe(expected + 1);
  let filled = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled);
    filled += bytesRead;
    if (filled > maxBytes) throw tooLarge(maxBytes);
    if (bytesRead === 0) return buffer.subarray(0, filled);
    if (filled === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(buffer.length)]);
  }
}

function tooLarge(maxBytes: number): AppError {
  return new AppError('too_large', `The file is larger than ${String(maxBytes)} bytes.`);
}
