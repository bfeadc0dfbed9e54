import type { FileHandle } from 'node:fs/promises';
import { AppError } from '@concierge/contract';
import { enterIfThere, maxDepth } from './folder-tree.ts';
import { FolderHandle, type OpenFile } from './path-walk.ts';
import { isSystemError } from './system-error.ts';

const CHUNK_BYTES = 256 * 1024;

export interface TreeEntry {
  /** Below the folder of the walk, with `/` between the parts. */
  readonly path: string;
  readonly mode: number;
  readonly mtime: Date;
  /** undefined: a folder. */
  readonly content: TreeContent | undefined;
}

export interface TreeContent {
  readonly size: number;
  /** `size` bytes, whatever becomes of the file meanwhile: what it grew by is left out, what it lost is zeros. */
  readonly chunks: AsyncIterable<Buffer>;
}

export interface TreeWalk {
  /**
   * Is this name at the top one that only the service, or its operator, writes to? There a file may have a second name.
   * Default: none is.
   */
  readonly isOwn?: (name: string) => boolean;
  /** Asked before anything is opened; a folder that is not wanted is not entered. */
  readonly isWanted?: (path: string) => boolean;
  /** What is wanted and cannot be had: a link, a special file, a file with a second name, what is nested too deeply. */
  readonly onLeftOut?: (path: string) => void;
  /** A file was cut short while it was read. */
  readonly onCutShort?: (path: string) => void;
}

interface Level {
  readonly folder: FolderHandle;
  /** '' at the top, else with a slash at its end. */
  readonly prefix: string;
  readonly depth: number;
  /** No command of a tenant writes here. */
  readonly isOwn: boolean;
}

/**
 * All folders and regular files below a folder, such as a tenant's, a folder before what is in it. Every name is
 * resolved against an open descriptor: what a command of the tenant swaps for a link meanwhile leads nowhere. An
 * entry's content is to be read before the next entry is asked for.
 */
export async function* walkTree(root: string, walk: TreeWalk = {}): AsyncGenerator<TreeEntry> {
  yield* walkLevel({ folder: await FolderHandle.open(root), prefix: '', depth: 0, isOwn: false }, walk);
}

async function* walkLevel(level: Level, walk: TreeWalk): AsyncGenerator<TreeEntry> {
  await using folder = level.folder;
  for (const name of (await folder.names()).toSorted()) {
    const path = `${level.prefix}${name}`;
    const stats = walk.isWanted?.(path) === false ? undefined : await folder.stat(name);
    if (stats === undefined) continue;
    const isOwn = level.isOwn || (level.depth === 0 && walk.isOwn?.(name) === true);
    if (stats.isDirectory()) {
      const inner = await enterUnlessDeep(level, name);
      if (inner !== undefined) {
        yield { path, mode: stats.mode, mtime: stats.mtime, content: undefined };
        yield* walkLevel({ folder: inner, prefix: `${path}/`, depth: level.depth + 1, isOwn }, walk);
        continue;
      }
    }
    const opened = await openIfPlain(folder, name, isOwn);
    if (opened !== undefined) yield* readEntry(path, opened, walk);
    else walk.onLeftOut?.(path);
  }
}

async function enterUnlessDeep({ folder, depth }: Level, name: string): Promise<FolderHandle | undefined> {
  return depth < maxDepth ? enterIfThere(folder, name) : undefined;
}

async function* readEntry(path: string, { handle, stats }: OpenFile, walk: TreeWalk): AsyncGenerator<TreeEntry> {
  try {
    const { size, mode, mtime } = stats;
    yield { path, mode, mtime, content: { size, chunks: exactly(handle, size, () => walk.onCutShort?.(path)) } };
  } finally {
    await handle.close();
  }
}

/** undefined when it went away, or is no file to be given away. */
async function openIfPlain(folder: FolderHandle, name: string, isOwn: boolean): Promise<OpenFile | undefined> {
  try {
    return await (isOwn ? folder.openOwnFile(name) : folder.openFile(name));
  } catch (error) {
    if (error instanceof AppError || isSystemError(error, 'EACCES')) return undefined;
    throw error;
  }
}

async function* exactly(handle: FileHandle, size: number, onCutShort: () => void): AsyncGenerator<Buffer> {
  let left = size;
  while (left > 0) {
    // Only what was read is handed on: the rest of a buffer may hold anything.
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK_BYTES, left)), 0);
    if (bytesRead === 0) break;
    left -= bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  if (left > 0) onCutShort();
  for (; left > 0; left -= Math.min(CHUNK_BYTES, left)) yield Buffer.alloc(Math.min(CHUNK_BYTES, left));
}

/** All of it in memory: for files that are known to be small. */
export async function readContent({ chunks }: TreeContent): Promise<Buffer> {
  const read: Buffer[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read);
}
