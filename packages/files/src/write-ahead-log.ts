import { close, constants, fdatasync, fstatSync, open as openFile, write } from 'node:fs';
import { mkdir, readFile, statfs, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import type { FolderSync } from './folder-sync.ts';
import { removeFolderIn } from './folder-tree.ts';
import { ignoreMissing, isSystemError, namesIn, toError } from './system-error.ts';

/*
 * A segment is a preallocated file: the magic number, then records, then zeros. A record is
 *   4 bytes  length of its text in bytes, little-endian
 *   4 bytes  CRC-32 of the text
 *   the text, UTF-8
 * The first place where no whole record stands is the end: nothing behind it was acknowledged.
 */
const magic = Buffer.from('CKWAL\0\0\u0001');
const headerBytes = 8;
const segmentBytes = 4 * 1024 * 1024;
const segmentSuffix = '.wal';
const segmentDigits = 8;
/** Larger texts have files of their own: a segment is for many. */
export const recordMaxBytes = 256 * 1024;
/** A segment goes when all of it is settled: what is settled stays in it for not much longer than this. */
const segmentMaxAgeMs = 60_000;
const groupMaxBytes = 1024 * 1024;
/** What a new segment leaves free: a log must not take the last room of those who wait for some. */
const keptFreeBytes = segmentBytes;

const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC }: { readonly [Flag in keyof typeof constants]?: number } = constants;
const newSegment = (O_WRONLY ?? 0) | (O_CREAT ?? 0) | (O_EXCL ?? 0) | (O_DSYNC ?? 0);
const privateMode = 0o600;

const openInPool = promisify(openFile);
const closeInPool = promisify(close);
const syncInPool = promisify(fdatasync);

export interface WriteAheadLogOptions {
  /** Does not exist yet: a log has one writer, and a folder one log. */
  readonly folder: string;
  readonly folders: FolderSync;
}

/** One record that is on disk. It keeps its segment until it is settled. */
export interface LogRecord {
  /** Its content is on disk elsewhere, or of no use any more. */
  settle(): void;
}

interface Waiting extends PromiseWithResolvers<LogRecord> {
  readonly bytes: Buffer;
}

/**
 * A log of what one process must not lose, until it is in files. Records that are appended while others are being
 * written share the next write: one synced write for a group of them (group commit). Segments whose records are all
 * settled are removed.
 */
export class WriteAheadLog {
  readonly #options: WriteAheadLogOptions;
  readonly #segments = new Set<Segment>();
  #current: Segment;
  #next: Promise<Segment> | undefined;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #count = 1;

  private constructor(options: WriteAheadLogOptions, first: Segment) {
    this.#options = options;
    this.#current = first;
    this.#segments.add(first);
  }

  /** @throws ENOSPC and what else the disk refuses */
  static async create(options: WriteAheadLogOptions): Promise<WriteAheadLog> {
    const { folder, folders } = options;
    const above = dirname(folder);
    const made = await mkdir(above, { recursive: true, mode: 0o700 });
    await assertRoom(above);
    await mkdir(folder, { mode: 0o700 });
    const first = await Segment.create(options, 1);
    await folders.sync(above);
    if (made !== undefined) await folders.sync(dirname(above));
    return new WriteAheadLog(options, first);
  }

  /**
   * On disk when it resolves, and so is every record that was appended before it.
   * @throws the error of the disk; the log takes no more records then. RangeError, when the text is too long
   */
  async append(text: string): Promise<LogRecord> {
    if (this.#failure !== undefined) throw this.#failure;
    const bytes = toRecord(text);
    const waiting: Waiting = { ...Promise.withResolvers<LogRecord>(), bytes };
    this.#waiting.push(waiting);
    // In a microtask: what one message brings in one go is one group.
    this.#writing ??= Promise.resolve().then(async () => this.#writeGroups());
    return waiting.promise;
  }

  /**
   * Starts a new segment when this one is old: what is settled in it goes with it.
   * @throws ENOSPC, when there is no room for another segment: what is in this one could not go into files, either
   */
  async rotate(): Promise<void> {
    await assertRoom(this.#options.folder);
    if (!this.#current.isUsed || this.#current.ageMs < segmentMaxAgeMs) return;
    await this.#prepareNext();
  }

  /** The folder goes, with everything that is in it. */
  async remove(): Promise<void> {
    await this.#writing;
    this.#failure ??= new Error('the log was closed');
    await this.#next?.catch(() => undefined);
    for (const segment of this.#segments) await segment.close();
    await removeLog(this.#options.folder);
  }

  async #writeGroups(): Promise<void> {
    try {
      while (this.#waiting.length > 0) await this.#writeGroup();
    } catch (error) {
      this.#failure = toError(error);
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
    } finally {
      this.#writing = undefined;
    }
  }

  async #writeGroup(): Promise<void> {
    const segment = await this.#segmentFor(this.#waiting[0]?.bytes.length ?? 0);
    const group = this.#takeGroup(segment.room);
    try {
      await segment.write(group.map(({ bytes }) => bytes));
    } catch (error) {
      // What of the group is on disk is unknown: as with any failed write.
      for (const { reject } of group) reject(toError(error));
      throw error;
    }
    for (const { resolve } of group) resolve(this.#newRecord(segment));
    if (segment.isHalfFull) this.#prepareNext().catch(() => undefined);
  }

  #takeGroup(room: number): Waiting[] {
    let bytes = 0;
    const limit = Math.min(room, groupMaxBytes);
    const end = this.#waiting.findIndex((one) => (bytes += one.bytes.length) > limit);
    // The first fits in any case; `room` is at least its length.
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : Math.max(end, 1));
  }

  async #segmentFor(bytes: number): Promise<Segment> {
    const isOld = this.#next !== undefined && this.#current.ageMs >= segmentMaxAgeMs;
    if (this.#current.room >= bytes && !isOld) return this.#current;
    const next = await this.#prepareNext();
    this.#next = undefined;
    const last = this.#current;
    this.#current = next;
    this.#drop(last);
    return next;
  }

  async #prepareNext(): Promise<Segment> {
    this.#next ??= Segment.create(this.#options, (this.#count += 1)).then(
      (segment) => {
        this.#segments.add(segment);
        return segment;
      },
      (error: unknown) => {
        this.#next = undefined;
        throw error;
      },
    );
    return this.#next;
  }

  #newRecord(segment: Segment): LogRecord {
    segment.unsettled += 1;
    let isSettled = false;
    return {
      settle: () => {
        if (isSettled) return;
        isSettled = true;
        segment.unsettled -= 1;
        this.#drop(segment);
      },
    };
  }

  #drop(segment: Segment): void {
    if (segment.unsettled > 0 || segment === this.#current || !this.#segments.delete(segment)) return;
    // A segment that stays costs a look of who recovers the log, and nothing else.
    segment.remove().catch(() => undefined);
  }
}

class Segment {
  readonly #path: string;
  readonly #descriptor: number;
  readonly #createdMs = performance.now();
  #position = headerBytes;
  /** Records in it that are not settled. */
  unsettled = 0;

  private constructor(path: string, descriptor: number) {
    this.#path = path;
    this.#descriptor = descriptor;
  }

  /** All of its blocks are on disk when this returns: a write into them moves no end of a file. */
  static async create({ folder, folders }: WriteAheadLogOptions, number: number): Promise<Segment> {
    await assertRoom(folder);
    const path = join(folder, `${String(number).padStart(segmentDigits, '0')}${segmentSuffix}`);
    const descriptor = await openInPool(path, newSegment, privateMode);
    const segment = new Segment(path, descriptor);
    try {
      const content = Buffer.alloc(segmentBytes);
      magic.copy(content);
      await segment.#writeAt(content, 0);
      await folders.sync(folder);
      return segment;
    } catch (error) {
      await segment.remove();
      throw error;
    }
  }

  get room(): number {
    return segmentBytes - this.#position;
  }

  get isUsed(): boolean {
    return this.#position > headerBytes;
  }

  get isHalfFull(): boolean {
    return this.#position > segmentBytes / 2;
  }

  get ageMs(): number {
    return performance.now() - this.#createdMs;
  }

  /** On disk when it returns. */
  async write(records: readonly Buffer[]): Promise<void> {
    const bytes = records.length === 1 ? records[0] : undefined;
    const group = bytes ?? Buffer.concat(records);
    await this.#writeAt(group, this.#position);
    // A recovery removes the segments: what is written afterwards is nowhere. One system call, of 1 µs.
    if (fstatSync(this.#descriptor).nlink === 0) throw new Error('the log was removed: its process was given up for dead');
    this.#position += group.length;
  }

  async close(): Promise<void> {
    await closeInPool(this.#descriptor).catch(() => undefined);
  }

  async remove(): Promise<void> {
    await this.close();
    await ignoreMissing(unlink(this.#path));
  }

  async #writeAt(bytes: Buffer, position: number): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      written += await writeInPool(this.#descriptor, bytes.subarray(written), position + written);
    }
    if (O_DSYNC === undefined) await syncInPool(this.#descriptor);
  }
}

async function writeInPool(descriptor: number, bytes: Buffer, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, 0, bytes.length, position, (error, written) => {
      if (error === null) resolve(written);
      else reject(error);
    });
  });
}

function toRecord(text: string): Buffer {
  const length = Buffer.byteLength(text);
  if (length > recordMaxBytes) throw new RangeError(`a record has at most ${String(recordMaxBytes)} bytes`);
  const bytes = Buffer.allocUnsafe(headerBytes + length);
  bytes.write(text, headerBytes);
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt32LE(crc32(bytes.subarray(headerBytes)), 4);
  return bytes;
}

/** The records of a log, in their order; also of one that is being written. None when there is no such folder. */
export async function readLog(folder: string): Promise<string[]> {
  const texts: string[] = [];
  for (const name of (await namesIn(folder)).filter((one) => one.endsWith(segmentSuffix)).toSorted()) {
    const bytes = await readFile(join(folder, name)).catch((error: unknown) => {
      // All of it was settled meanwhile.
      if (isSystemError(error, 'ENOENT')) return Buffer.alloc(0);
      throw error;
    });
    texts.push(...readRecords(bytes));
  }
  return texts;
}

function* readRecords(bytes: Buffer): Generator<string> {
  // Of a later version: there is something, and nothing here can read it.
  if (isLaterSegment(bytes)) yield '';
  if (!bytes.subarray(0, headerBytes).equals(magic)) return;
  for (let at = headerBytes; at + headerBytes <= bytes.length;) {
    const length = bytes.readUInt32LE(at);
    const text = bytes.subarray(at + headerBytes, at + headerBytes + length);
    if (length === 0 || text.length < length || crc32(text) !== bytes.readUInt32LE(at + 4)) return;
    yield text.toString('utf8');
    at += headerBytes + length;
  }
}

/** The last byte of the magic number is its version. */
function isLaterSegment(bytes: Buffer): boolean {
  const version = headerBytes - 1;
  return bytes.subarray(0, version).equals(magic.subarray(0, version)) && (bytes[version] ?? 0) > (magic[version] ?? 0);
}

async function assertRoom(folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize >= segmentBytes + keptFreeBytes) return;
  throw Object.assign(new Error('no room for a segment of a write-ahead log'), { code: 'ENOSPC' });
}

/** A log whose records are all settled. */
export async function removeLog(folder: string): Promise<void> {
  await removeFolderIn(dirname(folder), basename(folder));
}
