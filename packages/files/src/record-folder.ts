import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, unlink } from 'node:fs/promises';
import { join, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { laterVersionCode, staleCode, type Log } from '@concierge/runtime';
import type { z } from 'zod';
import { AppError, invalidFieldsText, isOfLaterVersion, toStoredSchema } from '@concierge/contract';
import { createFile, replaceFile, sweepTemporaries, type AtomicWrite } from './atomic-file.ts';
import type { FolderSync } from './folder-sync.ts';
import type { RecordChange, RecordChanges } from './record-changes.ts';
import { lookQuickly, lstatIfThere } from './stat-cache.ts';
import { namesIn, isSystemError } from './system-error.ts';

const STALE_LOOKS_MAX = 3;
/** A record that another machine has replaced is waited for, a little longer than a mount may show the old one. */
const REPLACED_EVERY_MS = 100;
const REPLACED_LOOKS_MAX = 20;

/**
 * What a file turned out to be. `broken` carries the reason for the log, not for a client. `isLater`: it is not
 * damaged, a later version wrote it.
 */
export type Parsed<T> =
  | { readonly status: 'ok'; readonly value: T }
  | { readonly status: 'broken'; readonly reason: string; readonly isLater?: boolean };

/**
 * A later version wrote this, in a way that this one does not understand: it is left alone, until a process of that
 * version comes to it. Counts as what is not available now (`isUnavailable`).
 */
export class LaterVersionError extends Error {
  override readonly name = 'LaterVersionError';
  readonly code = laterVersionCode;
  readonly path: string;

  constructor(path: string) {
    super(`${path} was written by a later version of Concierge, and waits for it`);
    this.path = path;
  }
}

/** @throws LaterVersionError when that is why it cannot be read */
export function assertNotLater(parsed: Parsed<unknown>, path: string): void {
  if (parsed.status === 'broken' && parsed.isLater === true) throw new LaterVersionError(path);
}

/** undefined for what waits for a later version. */
export async function unlessLater<Result>(work: Promise<Result>): Promise<Result | undefined> {
  return work.catch((error: unknown) => {
    if (error instanceof LaterVersionError) return undefined;
    throw error;
  });
}

/** JSON that any version of ours may have stored: what it does not know of it is kept (`toStoredSchema`). */
export function parseStored<S extends z.ZodType>(schema: S, text: string): Parsed<z.output<S>> {
  return parseJson(toStoredSchema(schema), text);
}

/** JSON of ours, read through exactly this schema. */
export function parseJson<S extends z.ZodType>(schema: S, text: string): Parsed<z.output<S>> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { status: 'broken', reason: error instanceof Error ? error.message : 'is not JSON' };
  }
  const parsed = schema.safeParse(json, { reportInput: true });
  if (parsed.success) return { status: 'ok', value: parsed.data };
  const isLater = isOfLaterVersion(parsed.error);
  const reason = invalidFieldsText(parsed.error);
  return { status: 'broken', reason: isLater ? `a later version of Concierge wrote it (${reason})` : reason, isLater };
}

/** The text of a private file of ours; undefined when there is none. Not for folders a tenant's tools can write to. */
export async function readIfThere(path: string): Promise<string | undefined> {
  return unlessMissing(async () => readFile(path, 'utf8'));
}

/** The same, of a small file that was written a moment ago. */
export async function readFreshIfThere(path: string): Promise<string | undefined> {
  return unlessMissing(async () => quickReadText(path));
}

/** For small files that were written a moment ago. Rejects as `readFile` does. */
export async function quickReadText(path: string): Promise<string> {
  return lookQuickly(
    () => readFileSync(path, 'utf8'),
    async () => readFile(path, 'utf8'),
  );
}

/** For small folders. Rejects as `readdir` does. */
export async function quickReaddir(path: string): Promise<string[]> {
  return lookQuickly(
    () => readdirSync(path),
    async () => readdir(path),
  );
}

async function unlessMissing(read: () => Promise<string>): Promise<string | undefined> {
  for (let looks = 1; ; looks += 1) {
    try {
      return await read();
    } catch (error) {
      if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
      // Another machine has replaced or removed the file meanwhile: its name leads to the new one.
      if (!isSystemError(error, staleCode) || looks === STALE_LOOKS_MAX) throw error;
    }
  }
}

/** Stored lines that parse; torn and blank ones are skipped (see `appendLines`), and those of a later version. */
export function parseLines<S extends z.ZodType>(schema: S, text: string): z.output<S>[] {
  return [...readLines(schema, text)].flatMap((parsed) => (parsed.status === 'ok' ? [parsed.value] : []));
}

/** As `parseLines`, where none may be missed. @throws LaterVersionError */
export function parseAllLines<S extends z.ZodType>(
  schema: S,
  { text, path }: { readonly text: string; readonly path: string },
): z.output<S>[] {
  const parsed = [...readLines(schema, text)];
  for (const one of parsed) assertNotLater(one, path);
  return parsed.flatMap((one) => (one.status === 'ok' ? [one.value] : []));
}

function* readLines<S extends z.ZodType>(schema: S, text: string): Generator<Parsed<z.output<S>>> {
  for (const line of text.split('\n')) if (line.trim() !== '') yield parseStored(schema, line);
}

interface StoreFolder {
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

/** For records of which no machine may go on reading what another one has replaced or removed. */
export interface SharedRecords<RecordType> {
  readonly changes: RecordChanges;
  /** A text that rises with each change of the record; the same for all records that were never changed. */
  readonly revisionOf: (record: RecordType) => string;
  /** What became of one that was replaced, where that can be said without reading it; else the file is waited for. */
  readonly toReplaced?: (record: RecordType, change: RecordChange) => RecordType;
}

export interface RecordFolderOptions<Schema extends z.ZodType> {
  /** One that only the service writes to. */
  readonly folder: string;
  /** Where it lies in another folder of the service: the uppermost one, directly in the tenant's own. */
  readonly store?: string;
  readonly schema: Schema;
  /** What its names look like, without `.json`; other files in the folder are not its own. */
  readonly names: Pick<RegExp, 'test'>;
  readonly folders: FolderSync;
  readonly tenantId: string;
  /** Called when the record of this name has been written or removed. */
  readonly onChanged?: ((name: string) => void) | undefined;
  readonly shared?: SharedRecords<z.output<Schema>>;
  readonly log: Log;
}

/**
 * A record to a file, written whole and read through its schema; what a later version has added to it is part of the
 * record. What cannot be read is logged, and reported to callers of `read`.
 */
export class RecordFolder<Schema extends z.ZodType> {
  readonly #options: RecordFolderOptions<Schema>;
  readonly #stored: Schema;

  constructor(options: RecordFolderOptions<Schema>) {
    this.#options = options;
    this.#stored = toStoredSchema(options.schema);
  }

  /** Sorted; those of damaged files, too. */
  async names(): Promise<string[]> {
    const files = await namesIn(this.#options.folder);
    return files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .filter((name) => this.#options.names.test(name))
      .toSorted();
  }

  /** One look, without reading it: for records that most often are not there. */
  async has(name: string): Promise<boolean> {
    return this.#options.names.test(name) && (await lstatIfThere(this.#toPath(name))) !== undefined;
  }

  /** undefined when there is none, and for a name that no record of this folder has. */
  async read(name: string): Promise<Parsed<z.output<Schema>> | undefined> {
    if (!this.#options.names.test(name)) return undefined;
    for (let looks = 1; ; looks += 1) {
      const parsed = await this.#readFile(name);
      const known = this.#compareWithTold(name, parsed);
      if (known !== 'replaced') return known;
      if (looks === REPLACED_LOOKS_MAX) return parsed;
      await sleep(REPLACED_EVERY_MS);
    }
  }

  /** Another process has told of a change that the file has not been seen to show: what was kept of it is old. */
  isOutdated(name: string): boolean {
    return this.#options.shared?.changes.find(this.#options.folder, name) !== undefined;
  }

  /** After the file was read: it may have been told meanwhile. `replaced`: it is to be looked at again. */
  #compareWithTold(name: string, parsed: Parsed<z.output<Schema>> | undefined): Parsed<z.output<Schema>> | 'replaced' | undefined {
    const { shared, folder } = this.#options;
    const change = shared?.changes.find(folder, name);
    if (shared === undefined || change === undefined) return parsed;
    const state = compareRevisions(parsed, change, shared);
    if (state === 'shown') shared.changes.settle(folder, change);
    if (state === 'removed') return undefined;
    if (state === 'shown' || parsed?.status !== 'ok') return parsed;
    return shared.toReplaced === undefined ? 'replaced' : { status: 'ok', value: shared.toReplaced(parsed.value, change) };
  }

  async #readFile(name: string): Promise<Parsed<z.output<Schema>> | undefined> {
    const { tenantId, log } = this.#options;
    const path = this.#toPath(name);
    const text = await readIfThere(path);
    if (text === undefined) return undefined;
    const parsed = parseJson(this.#stored, text);
    if (parsed.status === 'ok') return parsed;
    const facts = { tenantId, path, reason: parsed.reason };
    if (parsed.isLater === true) log.warn(facts, 'a file of a later version is not used');
    else log.error(facts, 'a file is damaged and is not used');
    return parsed;
  }

  /** As `read`, where a damaged file is as good as none. @throws LaterVersionError */
  async find(name: string): Promise<z.output<Schema> | undefined> {
    const parsed = await this.read(name);
    if (parsed?.status === 'ok') return parsed.value;
    if (parsed !== undefined) assertNotLater(parsed, this.#toPath(name));
    return undefined;
  }

  /** False when there is one of this name already; on disk either way. */
  async create(name: string, record: z.output<Schema>): Promise<boolean> {
    return this.#write(name, record, createFile);
  }

  /** In place of the one that was there, if any. @throws LaterVersionError when that is one of a later version */
  async put(name: string, record: z.output<Schema>): Promise<void> {
    await this.find(name);
    await this.#write(name, record, replaceFile);
    const { shared } = this.#options;
    if (shared !== undefined) this.#tell(name, { revision: shared.revisionOf(record), isRemoved: false });
  }

  /** False when there was none. */
  async remove(name: string): Promise<boolean> {
    const { folder, names, folders } = this.#options;
    if (!names.test(name)) return false;
    const revision = await this.#readRevision(name);
    try {
      await unlink(join(folder, `${name}.json`));
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return false;
      throw error;
    }
    await folders.sync(folder);
    this.#tell(name, { revision, isRemoved: true });
    this.#options.onChanged?.(name);
    return true;
  }

  /** Clears away what writers that died in the middle left. */
  async sweep(): Promise<void> {
    await sweepTemporaries(this.#options.folder);
  }

  #toPath(name: string): string {
    return join(this.#options.folder, `${name}.json`);
  }

  async #readRevision(name: string): Promise<string> {
    const { shared } = this.#options;
    const parsed = shared === undefined ? undefined : await this.read(name);
    return shared !== undefined && parsed?.status === 'ok' ? shared.revisionOf(parsed.value) : '';
  }

  #tell(name: string, change: Pick<RecordChange, 'revision' | 'isRemoved'>): void {
    const { shared, folder, tenantId } = this.#options;
    shared?.changes.tell(folder, { tenantId, name, ...change });
  }

  async #write<Result>(name: string, record: z.output<Schema>, write: (file: AtomicWrite) => Promise<Result>): Promise<Result> {
    const { folder, store = folder, names, folders } = this.#options;
    if (!names.test(name)) throw new TypeError(`not a name of this folder: ${name}`);
    const content = `${JSON.stringify(record, undefined, 2)}\n`;
    const file = { folder, name: `${name}.json`, content, folders };
    const made = await makeStoreFolder(folder, { store });
    // At once: all of it is on disk when this returns, and the order does not matter.
    const [result] = await Promise.all([write(file), keepFolders(made, folders)]);
    this.#options.onChanged?.(name);
    return result;
  }
}

/**
 * A name that is missing is never out of date, and a record of a later revision was written since. A damaged one has no
 * revision.
 */
function compareRevisions<RecordType>(
  parsed: Parsed<RecordType> | undefined,
  { revision, isRemoved }: RecordChange,
  { revisionOf }: SharedRecords<RecordType>,
): 'shown' | 'removed' | 'replaced' {
  if (parsed === undefined) return 'shown';
  const own = parsed.status === 'ok' ? revisionOf(parsed.value) : '';
  if (isRemoved) return own > revision ? 'shown' : 'removed';
  return own < revision ? 'replaced' : 'shown';
}
