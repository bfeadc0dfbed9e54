import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  AppError,
  FILE_VERSIONS_MAX,
  FileVersion,
  FileVersionId,
  hasHiddenPart,
  limits,
  type Actor,
  type FileVersionView,
  type MeasuredPart,
} from '@concierge/contract';
import { FolderHandle, enterIfThere, namesIn, RecordFolder, removeTree, type FolderSync } from '@concierge/files';
import { hashParts, type Log } from '@concierge/runtime';
import { LRUCache } from 'lru-cache';
import type { TenantFiles, WriteConditions } from './tenant-files.ts';

const FOLDER = 'history';
const HASHED = /^[0-9a-f]{32}$/u;
const VERSION_NAMES = /^\d{15}-[0-9a-f]{8}$/u;
/** Files with a history; of more, those that were changed longest ago lose theirs. */
const FILES_MAX = 500;
/** Longer texts are written, and not kept. */
const TEXT_MAX_BYTES = 4 * limits.contextFileMaxBytes;
const TIME_DIGITS = 15;

export interface FileHistoryOptions {
  readonly tenantId: string;
  /** tenants/<id>/settings: commands of the tenant do not see it, and no path of its files leads there. */
  readonly store: string;
  readonly files: TenantFiles;
  readonly folders: FolderSync;
  readonly log: Log;
}

/** The file as a part of a prompt, with a digest that finds the version again, of files that have a history. */
export function measurePart(path: string, text: string): MeasuredPart {
  return isKept(path) ? [path, text.length, digestPart(text)] : [path, text.length];
}

const DIGESTED_CHARACTERS_MAX = 1_000_000;
/** By the text. Files stay as they are from turn to turn, so that each is hashed once and not for every turn. */
const digests = new LRUCache<string, string>({
  maxSize: DIGESTED_CHARACTERS_MAX,
  sizeCalculation: (_digest, text) => text.length + 1,
});

/** Of the text of a part of a prompt, as the record of a turn keeps it. */
export function digestPart(text: string): string {
  const known = digests.get(text);
  if (known !== undefined) return known;
  const digest = hashParts([text], { separator: 'unit', digits: 16 });
  digests.set(text, digest);
  return digest;
}

/** Notes are left out: what an agent or an owner forgets must not live on here. */
function isKept(path: string): boolean {
  if (path === 'MEMORY.md' || hasHiddenPart(path)) return false;
  return /^(?:[^/]+\.md$|(?:skills|templates|agents)\/)/u.test(path);
}

interface FileWriter extends Pick<TenantFiles, 'readText' | 'readBytes' | 'list' | 'stat' | 'writeText'> {
  /** Reads, changes and writes a text, unless another has written it meanwhile. Throws what `change` throws. */
  updateText(path: string, change: (text: string) => string): Promise<{ etag: string }>;
}

/** What was written to context files, skills, templates and agents, by whom and when; a bounded number of versions. */
export class FileHistory {
  readonly #options: FileHistoryOptions;

  constructor(options: FileHistoryOptions) {
    this.#options = options;
  }

  /** As `TenantFiles.writeText`, and kept. @throws what that throws */
  async write(
    path: string,
    { text, by, ...conditions }: WriteConditions & { readonly text: string; readonly by: Actor },
  ): Promise<{ etag: string; created: boolean }> {
    const before = await this.#readNow(path);
    const written = await this.#options.files.writeText(path, text, conditions);
    await this.#keep(path, { before, text, by });
    return written;
  }

  /** As `TenantFiles.remove`, and kept. @throws what that throws */
  async remove(path: string, { by, ifMatch }: Pick<WriteConditions, 'ifMatch'> & { readonly by: Actor }): Promise<void> {
    const before = await this.#readNow(path);
    await this.#options.files.remove(path, { ifMatch });
    if (before !== undefined) await this.#keep(path, { before, text: null, by });
  }

  /** Newest first; with `id` the text of that one. */
  async list(path: string, id?: string): Promise<FileVersionView[]> {
    const records = this.#openRecords(toFolderName(path));
    const views: FileVersionView[] = [];
    for (const name of (await records.names()).toReversed()) {
      const found = await records.find(name);
      if (found === undefined || found.path !== path) continue;
      const { at, by, text } = found;
      const isAsked = id === name && text !== null;
      views.push({ id: name, at, by, size: Buffer.byteLength(text ?? ''), isRemoved: text === null, ...(isAsked && { text }) });
    }
    return views.slice(0, FILE_VERSIONS_MAX);
  }

  /** The newest version whose text is meant; undefined: there is none, or it is not kept any more. */
  async findText(path: string, isMeant: (text: string) => boolean): Promise<string | undefined> {
    const records = this.#openRecords(toFolderName(path));
    for (const name of (await records.names()).toReversed()) {
      const found = await records.find(name);
      if (found?.path === path && found.text !== null && isMeant(found.text)) return name;
    }
    return undefined;
  }

  /** Writes a version again, as a new one. @throws AppError not_found, and what `write` throws */
  async restore(path: string, { id, by }: { readonly id: string; readonly by: Actor }): Promise<{ etag: string }> {
    const found = FileVersionId.safeParse(id).success ? await this.#openRecords(toFolderName(path)).find(id) : undefined;
    if (found?.path !== path || found.text === null) throw new AppError('not_found', 'There is no such version of this file.');
    return this.write(path, { text: found.text, by });
  }

  /** Removes the versions whose text is meant; how many. */
  async erase(isMeant: (version: FileVersion) => boolean): Promise<number> {
    let erased = 0;
    for (const folder of await this.#folders()) {
      const records = this.#openRecords(folder);
      for (const name of await records.names()) {
        const found = await records.find(name);
        if (found !== undefined && isMeant(found) && (await records.remove(name))) erased += 1;
      }
    }
    return erased;
  }

  /** The tenant's files for one who writes: what is written through it is kept with that name. */
  writer(by: Actor): FileWriter {
    const { files } = this.#options;
    return {
      readText: async (path, options) => files.readText(path, options),
      readBytes: async (path, options) => files.readBytes(path, options),
      list: async (path, options) => files.list(path, options),
      stat: async (path) => files.stat(path),
      writeText: async (path, text, conditions) => this.write(path, { text, by, ...conditions }),
      updateText: async (path, change) => {
        const { text, etag } = await files.readText(path);
        return this.write(path, { text: change(text), by, ifMatch: etag });
      },
    };
  }

  async #readNow(path: string): Promise<Before | undefined> {
    if (!isKept(path)) return undefined;
    try {
      return await this.#options.files.readText(path, { maxBytes: TEXT_MAX_BYTES });
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** What is recorded has been done: that it cannot be kept is logged, and fails nothing. */
  async #keep(path: string, { before, text, by }: Change): Promise<void> {
    if (!isKept(path) || Buffer.byteLength(text ?? '') > TEXT_MAX_BYTES) return;
    try {
      await this.#addVersions(path, { before, text, by });
    } catch (error) {
      const { tenantId, log } = this.#options;
      log.error({ tenantId, err: error }, 'a version of a file could not be kept');
    }
  }

  async #addVersions(path: string, { before, text, by }: Change): Promise<void> {
    const records = this.#openRecords(toFolderName(path));
    const last = (await records.names()).at(-1);
    if (last === undefined) await this.#dropOldest();
    const newest = last === undefined ? undefined : await records.find(last);
    // It was written by something that leaves no name, or before there was a history.
    if (before !== undefined && newest?.text !== before.text) {
      await this.#add(records, { path, at: new Date(before.mtimeMs), by: null, text: before.text });
    }
    if (before?.text !== text) await this.#add(records, { path, at: new Date(), by, text });
    for (const name of (await records.names()).slice(0, -FILE_VERSIONS_MAX)) await records.remove(name);
  }

  async #add(
    records: RecordFolder<typeof FileVersion>,
    { path, at, by, text }: { readonly path: string; readonly at: Date; readonly by: Actor | null; readonly text: string | null },
  ): Promise<void> {
    // Later than every other: a clock that was set back must not put it between them.
    const last = Number((await records.names()).at(-1)?.slice(0, TIME_DIGITS) ?? 0);
    const time = Math.max(Math.floor(at.getTime()), last + 1);
    const name = `${String(time).padStart(TIME_DIGITS, '0')}-${randomBytes(4).toString('hex')}`;
    await records.create(name, { version: 1, path, at: at.toISOString(), by, text });
  }

  /** Removes the histories of the files that were changed longest ago, where there are too many. */
  async #dropOldest(): Promise<void> {
    const folders = await this.#folders();
    if (folders.length < FILES_MAX) return;
    const newest = await Promise.all(
      folders.map(async (folder) => [(await this.#openRecords(folder).names()).at(-1) ?? '', folder] as const),
    );
    const oldest = newest.toSorted(([one], [other]) => (one < other ? -1 : 1)).slice(0, folders.length - FILES_MAX + 1);
    await using store = await FolderHandle.open(this.#options.store);
    await using history = await enterIfThere(store, FOLDER);
    if (history !== undefined) for (const [, folder] of oldest) await removeTree(history, folder);
  }

  async #folders(): Promise<string[]> {
    return (await namesIn(join(this.#options.store, FOLDER))).filter((name) => HASHED.test(name));
  }

  #openRecords(folder: string): RecordFolder<typeof FileVersion> {
    const { tenantId, store, folders, log } = this.#options;
    const place = { folder: join(store, FOLDER, folder), store, names: VERSION_NAMES };
    return new RecordFolder({ ...place, schema: FileVersion, folders, tenantId, log });
  }
}

interface Before {
  readonly text: string;
  readonly mtimeMs: number;
}

interface Change {
  readonly before: Before | undefined;
  readonly text: string | null;
  readonly by: Actor;
}

function toFolderName(path: string): string {
  return hashParts([path], { separator: 'unit', digits: 32 });
}
