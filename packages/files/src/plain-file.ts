import { rename, unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { writeTemporary } from './atomic-file.ts';
import { foldName, invalidPath, assertPlainFile, type FolderHandle } from './path-walk.ts';
import { ignoreMissing } from './system-error.ts';

/** What tenants' own files get: their sandbox runs as another user and must be able to read them. */
const visibleMode = 0o644;

/**
 * The first bytes of a plain file in a held folder, and how many it has in all.
 * @throws AppError not_found, invalid_request
 */
export async function readPlainHead(folder: FolderHandle, name: string, maxBytes: number): Promise<{ bytes: Buffer; size: number }> {
  const { handle, stats } = await folder.openFile(name);
  try {
    const buffer = Buffer.allocUnsafe(Math.min(stats.size, maxBytes));
    let filled = 0;
    while (filled < buffer.length) {
      const { bytesRead } = await handle.read(buffer, filled, buffer.length - filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return { bytes: buffer.subarray(0, filled), size: Math.max(filled, stats.size) };
  } finally {
    await handle.close();
  }
}

/**
 * Temp, fsync, rename, fsync of the folder, in a held folder. Refuses to replace anything but a plain file, and to make
 * a name that differs from an existing one only in case. @throws AppError invalid_request
 */
export async function writePlainFile(folder: FolderHandle, name: string, content: string | Uint8Array): Promise<void> {
  const existing = await folder.stat(name);
  if (existing === undefined) await assertNoDuplicate(folder, name);
  else assertPlainFile(existing);
  const temporary = await writeTemporary(folder.at(''), content, { mode: visibleMode });
  try {
    await folder.give(basename(temporary));
    await rename(temporary, folder.at(name));
  } catch (error) {
    await ignoreMissing(unlink(temporary)).catch(() => undefined);
    throw error;
  }
  await folder.sync();
}

/** Appends and fsyncs; makes the file when there is none. @throws AppError invalid_request */
export async function appendPlainFile(folder: FolderHandle, name: string, content: Uint8Array): Promise<void> {
  const existing = await folder.stat(name);
  if (existing === undefined) await assertNoDuplicate(folder, name);
  const handle = await folder.openForAppend(name, visibleMode);
  try {
    for (let written = 0; written < content.length;) {
      written += (await handle.write(content, written)).bytesWritten;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (existing === undefined) await folder.sync();
}

/** `notes.md` beside `Notes.md` would be one file on some disks and two on others. @throws AppError invalid_request */
export async function assertNoDuplicate(folder: FolderHandle, name: string): Promise<void> {
  const folded = foldName(name);
  for (const other of await folder.names()) {
    if (other !== name && foldName(other) === folded) throw invalidPath(`collides with ${other}, which differs only in case`);
  }
}
