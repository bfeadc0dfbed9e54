import { createHash } from 'node:crypto';
import { rmdir, unlink } from 'node:fs/promises';
import { AppError, limits } from '@concierge/contract';
import {
  appendPlainFile,
  assertNoDuplicate,
  emptyFolder,
  foldName,
  FolderHandle,
  invalidPath,
  parsePath,
  sweepFolder,
  temporaryMaxAgeMs,
  writePlainFile,
} from '@concierge/files';
import { KeyedMutex } from '@concierge/runtime';
import { toFileEntry, listFolder, type FileEntry } from './list-folder.ts';

const etagHexDigits = 32;

/** What is not the tenant's to read or write by path: state with rules of its own, reached through its own classes. */
const privateNames = new Set([
  'sessions',
  'inbox',
  'channels',
  'cron',
  'keys',
  'keys.json',
  'tenant.json',
  'settings',
  // A file of earlier versions; its content moves to settings/ (see `SettingsFiles`).
  'tenant.last-good.json',
  'uploads',
  'mcp',
  'contacts',
  'handoffs',
  'outbox',
  'widget',
  'events',
]);

/**
 * The top of a tenant's folder as its commands see it: our own state not at all, what was attached to messages to read
 * only. Everything else is the workspace.
 */
export const workspaceRules: { readonly masked: readonly string[]; readonly readOnly: readonly string[] } = {
  masked: [...privateNames].filter((name) => name !== 'uploads'),
  readOnly: ['uploads'],
};

/** Is this first part of a path one that only our own code may touch? */
export function isPrivateName(name: string): boolean {
  return privateNames.has(foldName(name));
}

/** Their own classes delete temporary files in these. */
const sweptElsewhere = new Set(['sessions', 'inbox', 'keys', 'uploads', 'mcp', 'settings']);

export interface FileBytes {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly size: number;
  readonly mtimeMs: number;
}

export interface FileText {
  readonly text: string;
  readonly etag: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Values of the HTTP headers of the same names. */
export interface WriteConditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export interface TenantFilesOptions {
  /** The tenant's folder. */
  readonly root: string;
  /** Names below it that lead to where paths begin; walked like the rest. */
  readonly base?: readonly string[];
  /** Runs every write; without it there is room for all of them. */
  readonly withRoom?: WithRoom | undefined;
}

interface ListOptions {
  readonly recursive?: boolean;
  readonly limit?: number;
  /** Of a path as it would be listed; what is in a folder that is left out is left out, too. */
  readonly isHidden?: (path: string) => boolean;
}

/** Throws when there is no room for so many bytes more. */
export type AssertRoom = (bytes: number) => Promise<void>;

/** Runs a write that asks for room first: what it asks stays true until it has ended. */
export type WithRoom = <Result>(path: string, write: (assertRoom: AssertRoom) => Promise<Result>) => Promise<Result>;

const endlessRoom: WithRoom = async (_path, write) => write(async () => Promise.resolve());

/**
 * The tenant's own files: context, skills, templates, agents, memory and whatever its agents make. Every path is walked
 * part by part without following links (see `FolderHandle`); only plain files with one link are read or replaced. State
 * with rules of its own (sessions, inbox, keys, uploads, contacts, …) is not to be seen here: reading it is
 * `not_found`, writing it `invalid_request`.
 */
export class TenantFiles {
  readonly #root: string;
  readonly #base: readonly string[];
  readonly #withRoom: WithRoom;
  readonly #writers = new KeyedMutex();

  constructor({ root, base = [], withRoom = endlessRoom }: TenantFilesOptions) {
    this.#root = root;
    this.#base = base;
    this.#withRoom = withRoom;
  }

  /** @throws AppError not_found, invalid_request (path, link, folder), too_large */
  async readBytes(path: string, options: { readonly maxBytes?: number } = {}): Promise<FileBytes> {
    const { parents, name } = readablePath(path);
    await using folder = await this.#walk(parents);
    const { bytes, mtimeMs } = await folder.readFile(name, options.maxBytes ?? limits.fileMaxBytes);
    return { bytes, etag: toEtag(bytes), size: bytes.length, mtimeMs };
  }

  /** As `readBytes`, and unsupported_media_type when it is not UTF-8. */
  async readText(path: string, options: { readonly maxBytes?: number } = {}): Promise<FileText> {
    const { bytes, ...facts } = await this.readBytes(path, options);
    return { text: decodeText(bytes), ...facts };
  }

  /**
   * Writes the whole file, making folders as needed. With conditions, the check and the write are one step within this
   * process; of two processes that write one file in the same instant the later one wins.
   * @throws AppError invalid_request, precondition_failed, too_large, memory_quota
   */
  async writeText(path: string, text: string, conditions: WriteConditions = {}): Promise<{ etag: string; created: boolean }> {
    const { parents, name } = writablePath(path);
    const bytes = Buffer.from(text);
    if (bytes.length > limits.fileMaxBytes)
      throw new AppError('too_large', `A file may have at most ${String(limits.fileMaxBytes)} bytes.`);
    return this.#writers.run(path, async () => {
      await this.#assertConditions(path, conditions);
      return this.#withRoom(path, async (assertRoom) => {
        const size = (await this.stat(path))?.size;
        await assertRoom(bytes.length - (size ?? 0));
        await using folder = await makeFolders(this.#root, [...this.#base, ...parents]);
        await writePlainFile(folder, name, bytes);
        return { etag: toEtag(bytes), created: size === undefined };
      });
    });
  }

  /**
   * Adds text at the end; `heading` goes before it when the file is new. Writers of several processes lose nothing to
   * each other, as they would by reading, changing and writing. @throws AppError invalid_request, too_large,
   * memory_quota
   */
  async appendText(path: string, text: string, heading = ''): Promise<void> {
    const { parents, name } = writablePath(path);
    const append = async (assertRoom: AssertRoom): Promise<void> => {
      const size = (await this.stat(path))?.size;
      const bytes = Buffer.from(size === undefined ? heading + text : text);
      if (bytes.length + (size ?? 0) > limits.fileMaxBytes)
        throw new AppError('too_large', `A file may have at most ${String(limits.fileMaxBytes)} bytes.`);
      await assertRoom(bytes.length);
      await using folder = await makeFolders(this.#root, [...this.#base, ...parents]);
      await appendPlainFile(folder, name, bytes);
    };
    await this.#writers.run(path, async () => this.#withRoom(path, append));
  }

  /** Removes a file. @throws AppError not_found, invalid_request, precondition_failed */
  async remove(path: string, conditions: Pick<WriteConditions, 'ifMatch'> = {}): Promise<void> {
    const { parents, name } = readablePath(path);
    await this.#writers.run(path, async () => {
      await this.#assertConditions(path, conditions);
      await using folder = await this.#walk(parents);
      const stats = await folder.stat(name);
      if (stats === undefined) throw new AppError('not_found', 'There is no such file.');
      if (stats.isDirectory()) throw invalidPath('names a folder');
      // Removing a link removes the link, whatever it points to.
      await unlink(folder.at(name));
      await folder.sync();
    });
  }

  /**
   * Removes a folder and all that is in it; links in it are removed, not followed.
   * @throws AppError not_found, invalid_request
   */
  async removeFolder(path: string): Promise<void> {
    const { parents, name } = readablePath(path);
    await using folder = await this.#walk(parents);
    await emptyFolder(await folder.enter(name));
    await rmdir(folder.at(name));
    await folder.sync();
  }

  /** undefined when there is nothing, or nothing that may be seen. @throws AppError invalid_request */
  async stat(path: string): Promise<FileEntry | undefined> {
    try {
      const { parents, name } = readablePath(path);
      await using folder = await this.#walk(parents);
      return toFileEntry(path, await folder.stat(name));
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      throw error;
    }
  }

  /**
   * What a folder holds, by name; `''` is the tenant's own. With `recursive`, folders are followed by what is in them.
   * Links, special files and names that could not be asked for are left out, and what `isHidden` says. Ends after
   * `limit` entries (default 1000).
   * @throws AppError not_found, invalid_request
   */
  async list(path = '', options: ListOptions = {}): Promise<FileEntry[]> {
    const names = path === '' ? [] : parsePath(path);
    if (names[0] !== undefined && isPrivateName(names[0])) throw new AppError('not_found', 'There is no such folder.');
    const entries: FileEntry[] = [];
    const folder = await this.#walk(names);
    const { recursive = false, limit = 1000 } = options;
    const isHidden = (below: string): boolean => (!below.includes('/') && isPrivateName(below)) || options.isHidden?.(below) === true;
    await listFolder(entries, folder, { prefix: path, recursive, limit, isHidden });
    return entries;
  }

  /** Removes what writers that died in the middle left in the folders seen here; how many. */
  async sweep(olderThanMs = temporaryMaxAgeMs): Promise<number> {
    return sweepFolder(await FolderHandle.open(this.#root), { except: sweptElsewhere, limitMs: Date.now() - olderThanMs });
  }

  async #walk(names: readonly string[]): Promise<FolderHandle> {
    return FolderHandle.walk(this.#root, [...this.#base, ...names]);
  }

  async #assertConditions(path: string, { ifMatch, ifNoneMatch }: WriteConditions): Promise<void> {
    if (ifMatch === undefined && ifNoneMatch === undefined) return;
    const current = await this.#etag(path);
    if (ifMatch !== undefined && !etagMatches(ifMatch, current)) throw new AppError('precondition_failed');
    if (ifNoneMatch !== undefined && etagMatches(ifNoneMatch, current)) throw new AppError('precondition_failed');
  }

  async #etag(path: string): Promise<string | undefined> {
    try {
      return (await this.readBytes(path, { maxBytes: Number.MAX_SAFE_INTEGER })).etag;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      throw error;
    }
  }
}

/** UTF-8 as it is, a byte order mark included. @throws AppError unsupported_media_type */
export function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new AppError('unsupported_media_type', 'The file is not UTF-8 text.', { cause: error });
  }
}

/** The same of the first bytes of a longer text: a character that was cut in two is left out. */
export function decodeHead(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
  } catch (error) {
    throw new AppError('unsupported_media_type', 'The file is not UTF-8 text.', { cause: error });
  }
}

interface Target {
  readonly parents: readonly string[];
  readonly name: string;
}

function parseTarget(path: string): Target {
  const names = parsePath(path);
  return { parents: names.slice(0, -1), name: names.at(-1) ?? names[0] };
}

/** Why a tenant's tools can neither read nor write this path; undefined when they can, be there a file or not. */
export function findPathProblem(path: string): string | undefined {
  try {
    writablePath(path);
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

function readablePath(path: string): Target {
  const target = parseTarget(path);
  if (isPrivateName(target.parents[0] ?? target.name)) throw new AppError('not_found', 'There is no such file.');
  return target;
}

function writablePath(path: string): Target {
  const target = parseTarget(path);
  if (isPrivateName(target.parents[0] ?? target.name)) throw invalidPath('is reserved');
  return target;
}

/** Walks down, making what is missing; a new folder must not differ from an old one only in case. */
async function makeFolders(root: string, names: readonly string[]): Promise<FolderHandle> {
  let folder = await FolderHandle.open(root);
  for (const name of names) {
    const parent = folder;
    try {
      if ((await parent.stat(name)) === undefined) {
        await assertNoDuplicate(parent, name);
        await parent.make(name);
      }
      folder = await parent.enter(name);
    } finally {
      await parent.close();
    }
  }
  return folder;
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
