import type { Stats } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { enterIfThere, isPlainFile, maxDepth, nameProblem, type FolderHandle } from '@concierge/files';

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
  /** Whether a path is left out, with everything in it, and not counted. */
  readonly isHidden: (path: string) => boolean;
}

/** undefined where nothing is, and for what tenants may not see: links, sockets, devices. */
export function toFileEntry(path: string, stats: Stats | undefined): FileEntry | undefined {
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) return { path, kind: 'folder', size: 0, mtimeMs: stats.mtimeMs };
  return isPlainFile(stats) ? { path, kind: 'file', size: stats.size, mtimeMs: stats.mtimeMs } : undefined;
}

/** Adds what a folder holds to `entries`, sorted by name, a folder before what is in it. Closes the folder. */
export async function listFolder(entries: FileEntry[], folder: FolderHandle, listing: Listing): Promise<void> {
  await using held = folder;
  for (const name of (await held.names()).toSorted()) {
    if (entries.length >= listing.limit) return;
    const path = listing.prefix === '' ? name : `${listing.prefix}/${name}`;
    if (nameProblem(name) !== undefined || listing.isHidden(path)) continue;
    const entry = toFileEntry(path, await held.stat(name));
    if (entry === undefined) continue;
    entries.push(entry);
    if (entries.length % lookedAtOnce === 0) await nextTurn();
    if (entry.kind === 'folder' && listing.recursive) await listInner(entries, held, { ...listing, prefix: path });
  }
}

async function listInner(entries: FileEntry[], parent: FolderHandle, listing: Listing): Promise<void> {
  const names = listing.prefix.split('/');
  const inner = names.length > maxDepth ? undefined : await enterIfThere(parent, names.at(-1) ?? '');
  if (inner !== undefined) await listFolder(entries, inner, listing);
}
