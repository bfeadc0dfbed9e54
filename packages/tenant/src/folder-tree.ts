import type { Stats } from 'node:fs';
import { rmdir, unlink } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import { temporaryPrefix } from './atomic-file.ts';
import { invalidPath, isPrivateName, nameProblem } from './path-rules.ts';
import { isPlainFile, type HeldFolder } from './path-walk.ts';
import { ignoreMissing } from './system-error.ts';

/** Each level holds a descriptor open, so a tree that a tenant nested without end must not be followed to its end. */
const maxDepth = 64;
/** Files are looked at in place where that is cheap: others have their turn after so many. */
const lookedAtOnce = 500;

export interface FileEntry {
  /** Relative to the tenant's folder, with `/` between the parts. */
  readonly path: string;
  readonly kind: 'file' | 'folder';
  /** Bytes; 0 for a folder. */
  readonly size: number;
  readonly mtimeMs: number;
}

export interface Listing {
  readonly prefix: string;
  readonly recursive: boolean;
  readonly limit: number;
}

/** undefined where nothing is, and for what tenants may not see: links, sockets, devices. */
export function entryOf(path: string, stats: Stats | undefined): FileEntry | undefined {
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) return { path, kind: 'folder', size: 0, mtimeMs: stats.mtimeMs };
  return isPlainFile(stats) ? { path, kind: 'file', size: stats.size, mtimeMs: stats.mtimeMs } : undefined;
}

/** Adds what a folder holds to `entries`, sorted by name, a folder before what is in it. Closes the folder. */
export async function listFolder(entries: FileEntry[], folder: HeldFolder, listing: Listing): Promise<void> {
  await using held = folder;
  for (const name of (await held.names()).toSorted()) {
    if (entries.length >= listing.limit) return;
    if (nameProblem(name) !== undefined || (listing.prefix === '' && isPrivateName(name))) continue;
    const path = listing.prefix === '' ? name : `${listing.prefix}/${name}`;
    const entry = entryOf(path, await held.stat(name));
    if (entry === undefined) continue;
    entries.push(entry);
    if (entries.length % lookedAtOnce === 0) await nextTurn();
    if (entry.kind === 'folder' && listing.recursive) await listInner(entries, held, { ...listing, prefix: path });
  }
}

async function listInner(entries: FileEntry[], parent: HeldFolder, listing: Listing): Promise<void> {
  const names = listing.prefix.split('/');
  const inner = names.length > maxDepth ? undefined : await enterIfThere(parent, names.at(-1) ?? '');
  if (inner !== undefined) await listFolder(entries, inner, listing);
}

/** Removes all that is in a folder; links are removed, not followed. Closes the folder. @throws AppError invalid_request */
export async function emptyFolder(folder: HeldFolder, depth = 0): Promise<void> {
  await using held = folder;
  if (depth > maxDepth) throw invalidPath('is nested too deeply to be removed at once');
  for (const name of await held.names()) {
    if ((await held.stat(name))?.isDirectory() === true) {
      await emptyFolder(await held.enter(name), depth + 1);
      await ignoreMissing(rmdir(held.at(name)));
    } else {
      await ignoreMissing(unlink(held.at(name)));
    }
  }
}

export interface Sweep {
  /** Names at the top that are not entered. */
  readonly except: ReadonlySet<string>;
  /** Milliseconds since the epoch; what was written later stays. */
  readonly limitMs: number;
}

/** Removes what writers that died in the middle left behind; how many. Closes the folder. */
export async function sweepFolder(folder: HeldFolder, sweep: Sweep, depth = 0): Promise<number> {
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

/** Removes a folder and all that is in it, if it is there. @throws AppError invalid_request */
export async function removeTree(parent: HeldFolder, name: string): Promise<void> {
  const folder = await enterIfThere(parent, name);
  if (folder === undefined) return;
  await emptyFolder(folder);
  await ignoreMissing(rmdir(parent.at(name)));
}

/** Bytes of all plain files below. Closes the folder. */
export async function folderBytes(folder: HeldFolder, depth = 0): Promise<number> {
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
export async function enterIfThere(folder: HeldFolder, name: string): Promise<HeldFolder | undefined> {
  try {
    return await folder.enter(name);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
