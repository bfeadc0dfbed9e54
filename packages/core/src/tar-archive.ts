import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat, statfs } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { AppError } from '@concierge/contract';
import { isSystemError, type TreeEntry } from '@concierge/files';
import * as tar from 'tar';

/** Read and write for the owner of the deployment only: what tenants keep is private. */
export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;
const PERMISSIONS = 0o777;
/** How often an unpacking looks whether the disk has room, and what it leaves free. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024;
const KEPT_FREE_BYTES = 256 * 1024 * 1024;

/**
 * The bytes of a `.tar.gz`, one entry at a time: its content is read when its bytes are asked for. A reader that goes
 * ends it, and closes what is open.
 */
export async function* packEntries(entries: AsyncIterable<TreeEntry>): AsyncGenerator<Buffer> {
  const pack = new tar.Pack({ gzip: true });
  // A failure is the reader's as long as there is one.
  pack.on('error', () => undefined);
  const reading = new AbortController();
  const fill = async (): Promise<void> => {
    for await (const entry of entries) await add(pack, entry, reading.signal);
    pack.end();
  };
  const filled = fill().catch((error: unknown) => void pack.emit('error', error));
  try {
    yield* pack;
  } finally {
    reading.abort();
    await filled;
  }
}

/** Resolves when the entry is in the archive. */
async function add(pack: tar.Pack, { path, mode, mtime, content }: TreeEntry, signal: AbortSignal): Promise<void> {
  const [type, name] = content === undefined ? (['Directory', `${path}/`] as const) : (['File', path] as const);
  const entry = new tar.ReadEntry(new tar.Header({ path: name, type, mode: mode & PERMISSIONS, mtime, size: content?.size ?? 0 }));
  const written = once(entry, 'end', { signal });
  // Looked at below, unless the reader goes before.
  written.catch(() => undefined);
  pack.add(entry);
  for await (const chunk of content?.chunks ?? []) {
    if (!entry.write(chunk)) await once(entry, 'drain', { signal });
  }
  entry.end();
  await written;
}

/** An archive on its way. */
export interface Streamed<Report> {
  readonly bytes: AsyncIterable<Buffer>;
  /** As far as it has come. */
  readonly report: () => Report;
}

/**
 * Writes what `begin` makes into a new file; what it came to.
 * @throws AppError conflict, when there is such a file: nothing is begun then
 */
export async function saveArchive<Report>(
  file: string,
  begin: () => Promise<Streamed<Report>>,
): Promise<Report & { readonly bytes: number }> {
  if (await exists(file)) throw new AppError('conflict', `${file} exists already.`);
  const partial = `${file}.${randomBytes(4).toString('hex')}.partial`;
  try {
    const { bytes, report } = await begin();
    await pipeline(bytes, createWriteStream(partial, { flags: 'wx', mode: FILE_MODE, flush: true }));
    await rename(partial, file);
    return { ...report(), bytes: (await stat(file)).size };
  } finally {
    await rm(partial, { force: true });
  }
}

/** What may be in an archive, and how much. */
export interface ArchiveRules {
  readonly archiveMaxBytes: number;
  readonly contentMaxBytes: number;
  readonly entriesMax: number;
  /** What is wrong with an entry of this path; undefined when nothing is. */
  readonly findProblem: (parts: readonly string[]) => string | undefined;
  /** Whether it is unpacked. */
  readonly isWanted: (path: string) => boolean;
}

export interface UnpackOptions {
  readonly source: AsyncIterable<Uint8Array>;
  readonly folder: string;
  /** Leading parts of the paths that are dropped. */
  readonly strip: number;
  readonly rules: ArchiveRules;
}

/**
 * Unpacks plain files and folders as they come; how many files there were.
 * @throws AppError invalid_request (no archive, one that is cut off, or an entry that may not be in it), too_large,
 * overloaded (the disk has no room)
 */
export async function unpackArchive({ source, folder, strip, rules }: UnpackOptions): Promise<number> {
  const entries = new ArchiveEntries(rules);
  const extract = tar.extract({
    cwd: folder,
    strip,
    strict: true,
    preserveOwner: false,
    fmode: FILE_MODE,
    dmode: FOLDER_MODE,
    filter: (path, entry) => entries.take(path, entry),
  });
  // What it has begun when it is given up fails later, when its folder is gone.
  extract.on('error', () => undefined);
  try {
    await pump(limitSource(source, { folder, entries, maxBytes: rules.archiveMaxBytes }), extract);
  } catch (error) {
    extract.abort(error instanceof Error ? error : new Error('given up', { cause: error }));
    if (error instanceof AppError) throw error;
    if (isSystemError(error, 'ENOSPC', 'EDQUOT')) throw noRoom(error);
    if (isSystemError(error, 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EMFILE', 'ENOENT')) throw error;
    throw new AppError('invalid_request', 'This is not an archive that can be read.', { cause: error });
  }
  entries.assertGood();
  return entries.files;
}

/** `stream.pipeline` does not take it: it is no stream of Node's, and may never say to it that it has drained. */
async function pump(source: AsyncIterable<Uint8Array>, extract: tar.Unpack): Promise<void> {
  const closed = once(extract, 'close');
  // Looked at below, whenever it comes.
  closed.catch(() => undefined);
  for await (const chunk of source) {
    if (!extract.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) await Promise.race([once(extract, 'drain'), closed]);
  }
  extract.end();
  await closed;
}

interface SourceLimits {
  readonly folder: string;
  readonly entries: ArchiveEntries;
  readonly maxBytes: number;
}

/** The source for as long as it is small enough, what is in it is good, and the disk has room. */
async function* limitSource(source: AsyncIterable<Uint8Array>, { folder, entries, maxBytes }: SourceLimits): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let sinceLook = Infinity;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new AppError('too_large', 'The archive is too large.');
    entries.assertGood();
    sinceLook += chunk.length;
    if (sinceLook > LOOK_EVERY_BYTES) {
      sinceLook = 0;
      const { bavail, bsize } = await statfs(folder);
      if (bavail * bsize < KEPT_FREE_BYTES) throw noRoom();
    }
    yield chunk;
  }
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

function noRoom(cause?: unknown): AppError {
  return new AppError('overloaded', 'The disk has no room for what is in the archive.', { cause });
}

/** What an archive was found to have. */
class ArchiveEntries {
  files = 0;
  readonly #rules: ArchiveRules;
  #problem: AppError | undefined;
  #count = 0;
  #bytes = 0;

  constructor(rules: ArchiveRules) {
    this.#rules = rules;
  }

  /** Whether it is to be unpacked. */
  take(path: string, entry: unknown): boolean {
    this.#problem ??= this.#findProblem(path, entry);
    return this.#problem === undefined && this.#rules.isWanted(path);
  }

  /** @throws AppError invalid_request, too_large */
  assertGood(): void {
    if (this.#problem !== undefined) throw this.#problem;
  }

  #findProblem(path: string, entry: unknown): AppError | undefined {
    const parts = path.replace(/\/$/u, '').split('/');
    const isPlain = entry instanceof tar.ReadEntry && (entry.type === 'File' || entry.type === 'Directory');
    if (!isPlain || parts.some((part) => part === '' || part === '.' || part === '..'))
      return new AppError('invalid_request', `The archive has an entry that is never made: ${path}.`);
    const problem = this.#rules.findProblem(parts);
    if (problem !== undefined) return new AppError('invalid_request', problem);
    this.#count += 1;
    this.#bytes += entry.size;
    if (entry.type === 'File') this.files += 1;
    const isTooLarge = this.#bytes > this.#rules.contentMaxBytes || this.#count > this.#rules.entriesMax;
    return isTooLarge ? new AppError('too_large', 'What is in the archive is too large.') : undefined;
  }
}
