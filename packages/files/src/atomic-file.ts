import { closeSync, fsync } from 'node:fs';
import { link, open, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openInPool, privateMode, temporaryName, temporaryPrefix, writeNewFile, type NewFileOptions } from './file-steps.ts';
import type { FolderSync } from './folder-sync.ts';
import { namesIn, ignoreMissing, isSystemError, toError } from './system-error.ts';

/**
 * No writer of ours takes this long between its temporary file and the rename, except one that was frozen; that one
 * fails cleanly.
 */
export const temporaryMaxAgeMs = 15 * 60_000;

const syncInPool = promisify(fsync);

export interface AtomicWrite {
  readonly folder: string;
  readonly name: string;
  readonly content: string | Uint8Array;
  readonly folders: FolderSync;
  /** Default 0o600: what we keep for ourselves. */
  readonly mode?: number;
}

/** A new file with this content, fsynced, under a temporary name; its path. Leaves nothing behind when it fails. */
export async function writeTemporary(folder: string, content: string | Uint8Array, options: NewFileOptions = {}): Promise<string> {
  const path = join(folder, temporaryName());
  try {
    await writeNewFile(path, content, options);
    return path;
  } catch (error) {
    await ignoreMissing(unlink(path)).catch(() => undefined);
    throw error;
  }
}

/** Makes the content of a file durable that was written without it. Rejects as `open` and `fsync` do. */
export async function syncFile(path: string): Promise<void> {
  const descriptor = await openInPool(path, 'r');
  try {
    await syncInPool(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Temp, fsync, rename, fsync of the folder: readers see the old file or the new one, and after it returns the new one
 * stays.
 */
export async function replaceFile({ folder, name, content, folders, mode }: AtomicWrite): Promise<void> {
  const temporary = await writeTemporary(folder, content, { mode });
  try {
    await rename(temporary, join(folder, name));
  } catch (error) {
    await ignoreMissing(unlink(temporary)).catch(() => undefined);
    throw error;
  }
  await folders.sync(folder);
}

/**
 * Temp, fsync, link, fsync of the folder. False when the name is taken; then, too, the name is on disk when this
 * returns, so that two callers may both confirm it to their clients.
 */
export async function createFile({ name, content, ...place }: AtomicWrite): Promise<boolean> {
  const { created, failure } = await createFiles({ ...place, files: [{ name, content }] });
  if (failure !== undefined) throw failure;
  return created[0] === true;
}

/** New files of one folder, in their order. */
export interface AtomicWrites extends Pick<AtomicWrite, 'folder' | 'folders' | 'mode'> {
  readonly files: readonly Pick<AtomicWrite, 'name' | 'content'>[];
}

/**
 * For each file whether it is new, as `createFile` returns it. With a `failure`, only for those before the file that
 * failed: nothing behind it was created.
 */
export interface CreatedFiles {
  readonly created: readonly boolean[];
  readonly failure: Error | undefined;
}

/**
 * As `createFile`, of several files at once: they are written side by side, get their names one after the other, and
 * share one fsync of the folder. A crash leaves the first so many of them, never a later one without an earlier one.
 */
export async function createFiles({ folder, files, folders, mode }: AtomicWrites): Promise<CreatedFiles> {
  const written = await Promise.allSettled(files.map(async ({ content }) => writeTemporary(folder, content, { mode })));
  const temporaries = written.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const created: boolean[] = [];
  let failure: Error | undefined;
  try {
    for (const [index, { name }] of files.entries()) created.push(await linkNew(writtenAt(written, index), join(folder, name)));
  } catch (error) {
    failure = toError(error);
  }
  // The temporary names are of no use to anyone by now; they go while the disk is busy with the folder.
  const cleared = Promise.all(temporaries.map(async (path) => ignoreMissing(unlink(path)).catch(() => undefined)));
  await Promise.all([created.length === 0 ? undefined : folders.sync(folder), cleared]);
  return { created, failure };
}

/** @throws what kept it from being written */
function writtenAt(written: readonly PromiseSettledResult<string>[], index: number): string {
  const one = written[index];
  if (one?.status === 'fulfilled') return one.value;
  throw one?.reason;
}

/** A second name for a file; false when the name is taken: the compare-and-set of every file system. */
export async function linkNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isSystemError(error, 'EEXIST')) return false;
    throw error;
  }
}

/**
 * Appends lines and fsyncs. Begins with a line break, so that a line which a crash tore cannot swallow the next one;
 * readers skip blank and torn lines. One `write` call: writers of several processes do not mix on a local disk.
 */
export async function appendLines(
  path: string,
  lines: readonly string[],
  folder: { readonly path: string; readonly folders: FolderSync },
): Promise<void> {
  if (lines.length === 0) return;
  const bytes = Buffer.from(`\n${lines.join('\n')}\n`);
  const handle = await open(path, 'a', privateMode);
  let isNew: boolean;
  try {
    isNew = (await handle.stat()).size === 0;
    for (let written = 0; written < bytes.length;) {
      written += (await handle.write(bytes, written)).bytesWritten;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (isNew) await folder.folders.sync(folder.path);
}

/** Removes temporaries older than `olderThanMs`; how many. A folder that is not there has none. */
export async function sweepTemporaries(folder: string, olderThanMs = temporaryMaxAgeMs): Promise<number> {
  const names = await namesIn(folder);
  return removeOldTemporaries(
    folder,
    names.filter((name) => name.startsWith(temporaryPrefix)),
    olderThanMs,
  );
}

/** As `sweepTemporaries`, where the caller has listed the folder already. */
export async function removeOldTemporaries(folder: string, names: readonly string[], olderThanMs = temporaryMaxAgeMs): Promise<number> {
  const limitMs = Date.now() - olderThanMs;
  let removed = 0;
  for (const name of names) {
    const path = join(folder, name);
    const facts = await stat(path).catch(() => undefined);
    if (facts === undefined || facts.isDirectory() || facts.mtimeMs > limitMs) continue;
    await ignoreMissing(unlink(path));
    removed += 1;
  }
  return removed;
}
