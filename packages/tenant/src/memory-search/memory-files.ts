import { join } from 'node:path';
import { AppError, hasHiddenPart } from '@concierge/contract';
import { folderBytes, FolderHandle, isPlainFile, keepFolders, makeStoreFolder, type FolderSync } from '@concierge/files';
import { SqliteLock, sqliteTrouble } from '@concierge/runtime';
import { toContactFolder, isHashedName } from '../sessions/session-ids.ts';
import { TenantFiles, type FileText, type WithRoom } from '../files/tenant-files.ts';
import type { FileEntry } from '../files/list-folder.ts';

const memoryFile = 'MEMORY.md';
const notesFolder = 'memory';
/** Holds a folder for each contact with notes. */
export const contactsFolder = 'contacts';
const notesMax = 10_000;
const slugMaxCharacters = 60;

export interface MemoryFilesOptions {
  /** The tenant's folder. */
  readonly root: string;
  /** The tenant's own files, whose writes to memory are counted (see `MemoryQuota`). */
  readonly files: TenantFiles;
  readonly quota: MemoryQuota;
}

export interface MemoryText extends FileText {
  readonly ref: string;
}

/**
 * What agents keep: MEMORY.md, which is part of every prompt, and notes under memory/. The owner's lie in the tenant's
 * folder, a contact's in a separate folder, which no path of the owner's API or of another contact leads to.
 */
export class MemoryFiles {
  readonly #options: MemoryFilesOptions;
  readonly #files: TenantFiles;

  constructor(options: MemoryFilesOptions, files: TenantFiles = options.files) {
    this.#options = options;
    this.#files = files;
  }

  /** The memory of one sender, and nothing but that. */
  forContact(sender: string): MemoryFiles {
    return this.forContactFolder(toContactFolder(sender));
  }

  /** The same by the name of its folder, for who goes through all of them. */
  forContactFolder(folder: string): MemoryFiles {
    const { root, quota } = this.#options;
    return new MemoryFiles(this.#options, new TenantFiles({ root, base: [contactsFolder, folder], withRoom: quota.withRoom }));
  }

  /**
   * Adds to MEMORY.md, or with a title to the note of that title. Nothing that was there is lost, also when others
   * write at the same time.
   * @throws AppError memory_quota, too_large, invalid_request (empty text)
   */
  async write({ text, title }: { readonly text: string; readonly title?: string | undefined }): Promise<{ ref: string }> {
    const body = text.trim();
    if (body === '')
      throw new AppError('invalid_request', 'There is nothing to remember.', { errors: [{ path: 'text', message: 'must not be empty' }] });
    const day = new Date().toISOString().slice(0, 'YYYY-MM-DD'.length);
    if (title === undefined || title.trim() === '') {
      await this.#files.appendText(memoryFile, `\n- ${day}: ${body.replaceAll('\n', '\n  ')}\n`, '# Memory\n');
      return { ref: memoryFile };
    }
    const ref = `${notesFolder}/${toSlug(title)}.md`;
    await this.#files.appendText(ref, `\n## ${day}\n\n${body}\n`, `# ${title.trim().replaceAll(/\s+/gu, ' ')}\n`);
    return { ref };
  }

  /** `ref` is what `write` and `list` give. @throws AppError not_found, invalid_request */
  async get(ref: string): Promise<MemoryText> {
    if (!isMemoryPath(ref)) throw new AppError('not_found', 'There is no such memory.');
    return { ref, ...(await this.#files.readText(ref)) };
  }

  /** Names of the folders of all contacts with notes. */
  async contactFolders(): Promise<string[]> {
    await using root = await FolderHandle.open(this.#options.root);
    if ((await root.stat(contactsFolder))?.isDirectory() !== true) return [];
    await using contacts = await root.enter(contactsFolder);
    return (await contacts.names()).filter(isHashedName).toSorted();
  }

  /**
   * Files only; their paths are refs. What begins with a dot is no note (other programs keep there what was removed, or
   * its history), and is listed with `hidden` alone.
   */
  async list(options: { readonly hidden?: boolean } = {}): Promise<FileEntry[]> {
    return (await this.listAll(options)).filter((entry) => entry.kind === 'file');
  }

  /** Files, and the folders that they are in. */
  async listAll({ hidden = false }: { readonly hidden?: boolean } = {}): Promise<FileEntry[]> {
    const main = await this.stat(memoryFile);
    const folder = await this.stat(notesFolder);
    const shown = { recursive: true, limit: notesMax, ...(!hidden && { isHidden: hasHiddenPart }) };
    const notes = await this.#files.list(notesFolder, shown).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'not_found') return [];
      throw error;
    });
    return [main, folder, ...notes].filter((entry) => entry !== undefined);
  }

  /** undefined when nothing is there that could be a note, or a folder of notes. */
  async stat(ref: string): Promise<FileEntry | undefined> {
    return hasHiddenPart(ref) ? undefined : this.#files.stat(ref);
  }

  /** @throws AppError not_found */
  async forget(ref: string): Promise<void> {
    if (!isMemoryPath(ref)) throw new AppError('not_found', 'There is no such memory.');
    await this.#files.remove(ref);
  }

  /**
   * Makes a note what `change` leaves of it; one of which nothing is left goes. undefined when nothing is taken out,
   * and for what is no text.
   */
  async takeOut<Cut extends { readonly text: string; readonly entries: number }>(
    ref: string,
    change: (text: string) => Cut,
  ): Promise<Cut | undefined> {
    const read = await this.get(ref).catch((error: unknown) => {
      if (error instanceof AppError && error.code !== 'overloaded') return undefined;
      throw error;
    });
    const cut = read === undefined ? undefined : change(read.text);
    if (read === undefined || cut === undefined || cut.entries === 0) return undefined;
    if (cut.text === '') await this.#files.remove(ref, { ifMatch: read.etag });
    else await this.#files.writeText(ref, cut.text, { ifMatch: read.etag });
    return cut;
  }

  /** All of it, what is no note included; false when there was nothing. */
  async forgetAll(): Promise<boolean> {
    const removals = [async () => this.#files.removeFolder(notesFolder), async () => this.#files.remove(memoryFile)];
    let hadAny = false;
    for (const remove of removals) hadAny = (await isRemoved(remove)) || hadAny;
    return hadAny;
  }

  /** Bytes of all memory of the tenant, its contacts' included. */
  async usedBytes(): Promise<number> {
    return this.#options.quota.usedBytes();
  }
}

export interface MemoryQuotaOptions {
  /** The tenant's folder. */
  readonly root: string;
  readonly folders: FolderSync;
  /** The tenant's limit as it now is; undefined where there is none. */
  readonly maxBytes: () => Promise<number | undefined>;
}

/**
 * Memory storage of a tenant (service interface, "Limits"): memory/, contacts/ and MEMORY.md together. Where there is a
 * limit, writes that are counted are made one at a time, of all processes on the machine: what was measured is still
 * true when the write ends.
 */
export class MemoryQuota {
  readonly #root: string;
  readonly #settings: string;
  readonly #folders: FolderSync;
  readonly #maxBytes: () => Promise<number | undefined>;
  readonly #lock: SqliteLock;

  constructor({ root, folders, maxBytes }: MemoryQuotaOptions) {
    this.#root = root;
    // A folder that commands of the tenant do not see.
    this.#settings = join(root, 'settings');
    this.#folders = folders;
    this.#maxBytes = maxBytes;
    this.#lock = new SqliteLock(join(this.#settings, 'memory-lock.db'));
  }

  /**
   * For `TenantFiles`: paths that are no memory have all the room there is.
   * @throws AppError memory_quota, overloaded
   */
  readonly withRoom: WithRoom = async (path, write) => {
    const maxBytes = isMemoryPath(path) ? await this.#maxBytes() : undefined;
    if (maxBytes === undefined) return write(async () => Promise.resolve());
    await keepFolders(await makeStoreFolder(this.#settings, { store: this.#settings, mode: 0o700 }), this.#folders);
    try {
      return await this.#lock.hold(async () => write(async (bytes) => this.#assertRoom(bytes, maxBytes)));
    } catch (error) {
      if (sqliteTrouble(error) !== 'busy') throw error;
      throw new AppError('overloaded', 'The memory is being written to by others.', { cause: error, retryAfterSeconds: 2 });
    }
  };

  /** Measured anew each time: what is written in the sandbox counts as well. */
  async usedBytes(): Promise<number> {
    await using root = await FolderHandle.open(this.#root);
    let bytes = 0;
    for (const name of [notesFolder, contactsFolder, memoryFile]) {
      const stats = await root.stat(name);
      if (stats?.isDirectory() === true) bytes += await folderBytes(await root.enter(name));
      else if (stats !== undefined && isPlainFile(stats)) bytes += stats.size;
    }
    return bytes;
  }

  async #assertRoom(bytes: number, maxBytes: number): Promise<void> {
    if (bytes <= 0) return;
    const used = await this.usedBytes();
    if (used + bytes > maxBytes) {
      throw new AppError(
        'memory_quota',
        `The memory storage of ${String(maxBytes)} bytes is used up (${String(used)} in use, ${String(bytes)} more needed).`,
      );
    }
  }
}

async function isRemoved(remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return false;
    throw error;
  }
}

/** Is this path of the tenant's files part of its memory? */
export function isMemoryPath(path: string): boolean {
  return path === memoryFile || path.startsWith(`${notesFolder}/`);
}

export function contactBase(sender: string): readonly [string, string] {
  return [contactsFolder, toContactFolder(sender)];
}

/** Marks belong to their letters: in Hindi and Thai they are vowels. */
const words = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu;

/** A file name for a title: its letters and digits; a title without any gets its hash. */
function toSlug(title: string): string {
  // What makes an emoji of a digit or a sign is no part of a word.
  const plain = title
    .replaceAll(/[\p{Me}\p{Variation_Selector}]/gu, '')
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFKC');
  const slug = (plain.match(words) ?? []).join('-').slice(0, slugMaxCharacters).toWellFormed().replace(/-$/u, '');
  return slug === '' ? toContactFolder(title) : slug;
}
