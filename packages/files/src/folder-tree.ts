import { rename, rmdir, unlink } from 'node:fs/promises';
import { AppError } from '@concierge/contract';
import { temporaryName, temporaryPrefix } from './file-steps.ts';
import { FolderHandle } from './path-walk.ts';
import { ignoreMissing, isSystemError } from './system-error.ts';

/** Each level holds a descriptor open, so a tree that a tenant nested without end must not be followed to its end. */
export const maxDepth = 64;
/** Each removes whatever `maxDepth` levels hold. Only a folder that is filled at the same time needs more. */
const emptyingPassesMax = 10_000;
/** A folder may get something between its emptying and its end. */
const removalsMax = 100;

/**
 * Removes all that is in a folder, also while it is changed: every name is resolved against an open descriptor, and
 * links are removed, not followed. What lies deeper than descriptors can follow is moved to the top of the folder, and
 * removed from there. Closes the folder.
 * @throws AppError conflict, when it is filled as fast as it is emptied
 */
export async function emptyFolder(folder: FolderHandle): Promise<void> {
  await using top = folder;
  for (let pass = 1; pass <= emptyingPassesMax; pass += 1) {
    const names = await top.names();
    if (names.length === 0) return;
    for (const name of names) await removeName({ folder: top, top, depth: 0 }, name);
  }
  throw beingFilled();
}

interface Emptied {
  readonly folder: FolderHandle;
  /** Where the removal began. */
  readonly top: FolderHandle;
  readonly depth: number;
}

/** What has become something else since it was looked at stays for the next pass. */
async function removeName({ folder, top, depth }: Emptied, name: string): Promise<void> {
  const stats = await folder.stat(name);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return unlessChanged(unlink(folder.at(name)));
  if (depth >= maxDepth) return unlessChanged(rename(folder.at(name), top.at(temporaryName())));
  const inner = await enterIfThere(folder, name, 'to remove');
  if (inner === undefined) return;
  {
    await using held = inner;
    for (const one of await held.names()) await removeName({ folder: held, top, depth: depth + 1 }, one);
  }
  await unlessChanged(rmdir(folder.at(name)));
}

/** Gone, no folder any more, a folder by now, or not empty any more. */
async function unlessChanged(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!isSystemError(error, 'ENOENT', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

export interface Sweep {
  /** Names at the top that are not entered. */
  readonly except: ReadonlySet<string>;
  /** Milliseconds since the epoch; what was written later stays. */
  readonly limitMs: number;
}

/** Removes what writers that died in the middle left behind; how many. Closes the folder. */
export async function sweepFolder(folder: FolderHandle, sweep: Sweep, depth = 0): Promise<number> {
  await using held = folder;
  let removed = 0;
  for (const name of await held.names()) {
    if (depth === 0 && sweep.except.has(name)) continue;
    const stats = await held.stat(name);
    if (stats === undefined) continue;
    const isFolder = stats.isDirectory() && depth < maxDepth;
    if (name.startsWith(temporaryPrefix) && stats.mtimeMs < sweep.limitMs) {
      await (isFolder ? removeTree(held, name) : ignoreMissing(unlink(held.at(name))));
      removed += 1;
    } else if (isFolder) {
      const inner = await enterIfThere(held, name);
      if (inner !== undefined) removed += await sweepFolder(inner, sweep, depth + 1);
    }
  }
  return removed;
}

/**
 * Removes a folder and all that is in it, if it is there.
 * @throws AppError conflict, when it is filled as fast as it is emptied
 */
export async function removeTree(parent: FolderHandle, name: string): Promise<void> {
  for (let attempt = 1; attempt <= removalsMax; attempt += 1) {
    const folder = await enterIfThere(parent, name, 'to remove');
    if (folder === undefined) return;
    await emptyFolder(folder);
    await unlessChanged(rmdir(parent.at(name)));
  }
  throw beingFilled();
}

function beingFilled(): AppError {
  return new AppError('conflict', 'The folder is being filled while it is emptied.');
}

/** As `removeTree`, for a folder in one of the service's own. */
export async function removeFolderIn(path: string, name: string): Promise<void> {
  const parent = await FolderHandle.open(path).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  });
  if (parent === undefined) return;
  await using held = parent;
  await removeTree(held, name);
}

/** Bytes of all plain files below. Closes the folder. */
export async function folderBytes(folder: FolderHandle, depth = 0): Promise<number> {
  await using held = folder;
  let bytes = 0;
  for (const name of await held.names()) {
    const stats = await held.stat(name);
    if (stats?.isFile() === true) bytes += stats.size;
    if (stats?.isDirectory() !== true || depth >= maxDepth) continue;
    const inner = await enterIfThere(held, name);
    if (inner !== undefined) bytes += await folderBytes(inner, depth + 1);
  }
  return bytes;
}

/** undefined when it went away, or became something else, since it was listed. */
export async function enterIfThere(folder: FolderHandle, name: string, purpose?: 'to remove'): Promise<FolderHandle | undefined> {
  try {
    return await (purpose === undefined ? folder.enter(name) : folder.enterToRemove(name));
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
