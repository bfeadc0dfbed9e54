import { createHash } from 'node:crypto';
import { rename, unlink, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { AppError } from '@concierge/contract';
import { writeTemporary } from './atomic-file.ts';
import { foldName, invalidPath, assertPlainFile, type FolderHandle } from './path-walk.ts';
import { ignoreMissing } from './system-error.ts';

/** What tenants' own files get: their sandbox runs as another user and must be able to read them. */
const visibleMode = 0o644;
const etagHexDigits = 32;

export interface PlainFile {
  readonly bytes: Buffer;
  readonly mtimeMs: number;
}

/** The content of a plain file in a held folder. @throws AppError not_found, invalid_request, too_large */
export async function readPlainFile(folder: FolderHandle, name: string, maxBytes: number): Promise<PlainFile> {
  const { handle, stats } = await folder.openFile(name);
  try {
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    return { bytes: await readBounded(handle, stats.size, maxBytes), mtimeMs: stats.mtimeMs };
  } finally {
    await handle.close();
  }
}

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

/** The strong entity tag of a file's content: quoted, as it stands in the header. */
export function toEtag(content: Uint8Array | string): string {
  return `"${createHash('sha256').update(content).digest('hex').slice(0, etagHexDigits)}"`;
}

/**
 * Does an `If-Match` or `If-None-Match` header name this tag? `*` names any that exists; weak tags never match (RFC
 * 9110, 13.1).
 */
export function etagMatches(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag);
}

function tooLarge(maxBytes: number): AppError {
  return new AppError('too_large', `The file is larger than ${String(maxBytes)} bytes.`);
}
