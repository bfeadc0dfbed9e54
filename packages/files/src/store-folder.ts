import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '@concierge/contract';
import type { FolderSync } from './folder-sync.ts';
import { lstatIfThere } from './stat-policy.ts';
import { isSystemError } from './system-error.ts';

export interface StoreFolder {
  /** A folder directly in the tenant's own: it is made when it is missing, what is above it never. */
  readonly store: string;
  /** Default 0o777, less the process' umask. */
  readonly mode?: number | undefined;
}

/**
 * Makes a folder of a store unless it is there; the folders that were made, for `keepFolders`. The tenant's own folder
 * is not made: a tenant that was deleted meanwhile does not come back by what is still being written for it.
 * @throws AppError not_found, when there is no such tenant
 */
export async function makeStoreFolder(path: string, { store, mode }: StoreFolder): Promise<readonly string[]> {
  if (path !== store && !path.startsWith(`${store}/`)) throw new TypeError(`${path} is not in ${store}`);
  if ((await lstatIfThere(path))?.isDirectory() === true) return [];
  if (await makeOne(path, mode)) return [path];
  if (path === store) throw new AppError('not_found', 'There is no such tenant.');
  const above = await makeStoreFolder(dirname(path), { store, mode });
  // Cleared away again in between: the write that follows fails, and its caller tries again or reports it.
  await makeOne(path, mode);
  return [...above, path];
}

/** Their own names must last as long as what is in them. */
export async function keepFolders(made: readonly string[], folders: FolderSync): Promise<void> {
  await Promise.all(made.map(async (folder) => folders.sync(dirname(folder))));
}

/** False when what it would be in is not there. */
async function makeOne(path: string, mode: number | undefined): Promise<boolean> {
  try {
    await mkdir(path, mode);
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return true;
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}
