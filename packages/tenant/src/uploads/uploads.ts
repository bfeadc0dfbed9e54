import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { AppError, limits, UploadId, UploadRef } from '@concierge/contract';
import {
  enterIfThere,
  FolderHandle,
  parseStored,
  removeTree,
  temporaryMaxAgeMs,
  temporaryName,
  temporaryPrefix,
  writePlainFile,
} from '@concierge/files';
import { toContactFolder } from '../sessions/session-ids.ts';

const metaMaxBytes = 16 * 1024;
const senderMaxBytes = 64;
/** Extracted text; what the model sees of it is cut shorter. */
const textMaxBytes = 16 * 1024 * 1024;

export interface NewUpload {
  readonly name: string;
  readonly type: UploadRef['type'];
  readonly bytes: Uint8Array;
  /** What was read out of a PDF or a text file. */
  readonly text?: string | undefined;
  /** A visitor of the web widget, who may attach nothing else. */
  readonly sender?: string | undefined;
}

/**
 * uploads/<id>/{meta.json, content, text.txt, sender}: written once, whole, and never changed. The text of a PDF comes
 * when it is first read; `sender` is the contact's hash, there for files of the widget's visitors.
 */
export class Uploads {
  readonly #root: string;

  /** `root`: the tenant's folder. */
  constructor(root: string) {
    this.#root = root;
  }

  /** On disk when it returns. The caller has checked size and type. */
  async save({ name, type, bytes, text, sender }: NewUpload): Promise<UploadRef> {
    const ref = UploadRef.parse({ id: `u_${randomBytes(16).toString('hex')}`, name, type, size: bytes.length });
    await using uploads = await FolderHandle.walk(this.#root, ['uploads'], { create: true });
    const temporary = temporaryName();
    await mkdir(uploads.at(temporary));
    try {
      await using folder = await uploads.enter(temporary);
      await writeNew(folder.at('meta.json'), JSON.stringify(ref));
      await writeNew(folder.at('content'), bytes);
      if (text !== undefined) await writeNew(folder.at('text.txt'), text);
      if (sender !== undefined) await writeNew(folder.at('sender'), toContactFolder(sender));
      await folder.sync();
      await rename(uploads.at(temporary), uploads.at(ref.id));
    } catch (error) {
      await removeTree(uploads, temporary).catch(() => undefined);
      throw error;
    }
    await uploads.sync();
    return ref;
  }

  async find(id: string): Promise<UploadRef | undefined> {
    const meta = await this.#read(id, 'meta.json', metaMaxBytes);
    const parsed = meta === undefined ? undefined : parseStored(UploadRef, meta.toString('utf8'));
    return parsed?.status === 'ok' ? parsed.value : undefined;
  }

  /** Whether this visitor of the web widget has uploaded it. */
  async isFrom(id: string, sender: string): Promise<boolean> {
    return (await this.#read(id, 'sender', senderMaxBytes))?.toString('utf8') === toContactFolder(sender);
  }

  /** Those that one of these visitors has uploaded, attached to a message or not. */
  async idsFrom(senders: readonly string[]): Promise<string[]> {
    await using root = await FolderHandle.open(this.#root);
    await using uploads = await enterIfThere(root, 'uploads');
    const found: string[] = [];
    for (const id of (await uploads?.names()) ?? []) {
      const isTheirs = await Promise.all(senders.map(async (sender) => this.isFrom(id, sender)));
      if (isTheirs.includes(true)) found.push(id);
    }
    return found;
  }

  /** @throws AppError not_found */
  async bytes(id: string): Promise<Buffer> {
    const bytes = await this.#read(id, 'content', limits.uploadMaxBytes);
    if (bytes === undefined) throw new AppError('not_found', 'There is no such upload.');
    return bytes;
  }

  /** undefined when nothing was read out of it, as of an image or of a PDF that is not read yet. */
  async text(id: string): Promise<string | undefined> {
    return (await this.#read(id, 'text.txt', textMaxBytes))?.toString('utf8');
  }

  /**
   * Keeps what was read out of an upload that is there already; of two texts the later one stays.
   * @throws AppError not_found
   */
  async saveText(id: string, text: string): Promise<void> {
    await using folder = await FolderHandle.walk(this.#root, ['uploads', UploadId.parse(id)]);
    await writePlainFile(folder, 'text.txt', text);
  }

  /** Nothing happens to one that is not there. */
  async remove(id: string): Promise<void> {
    if (!UploadId.safeParse(id).success) return;
    await using root = await FolderHandle.open(this.#root);
    await using uploads = await enterIfThere(root, 'uploads');
    if (uploads === undefined || !(await uploads.names()).includes(id)) return;
    await removeTree(uploads, id);
    await uploads.sync();
  }

  /** Those that were stored before a time, in no order, at most `limit` of them, with the size of what was uploaded. */
  async listBefore(beforeMs: number, limit: number): Promise<{ readonly id: string; readonly bytes: number }[]> {
    await using root = await FolderHandle.open(this.#root);
    await using uploads = await enterIfThere(root, 'uploads');
    const found: { readonly id: string; readonly bytes: number }[] = [];
    for (const id of (await uploads?.names()) ?? []) {
      if (found.length === limit) break;
      if (!UploadId.safeParse(id).success) continue;
      const stats = await uploads?.stat(id);
      if (stats !== undefined && stats.mtimeMs < beforeMs) found.push({ id, bytes: (await this.find(id))?.size ?? 0 });
    }
    return found;
  }

  /** Clears away uploads that were cut off. */
  async sweep(olderThanMs = temporaryMaxAgeMs): Promise<void> {
    await using root = await FolderHandle.open(this.#root);
    await using uploads = await enterIfThere(root, 'uploads');
    if (uploads === undefined) return;
    for (const name of await uploads.names()) {
      const stats = name.startsWith(temporaryPrefix) ? await uploads.stat(name) : undefined;
      if (stats !== undefined && stats.mtimeMs < Date.now() - olderThanMs) await removeTree(uploads, name);
    }
  }

  async #read(id: string, name: string, maxBytes: number): Promise<Buffer | undefined> {
    if (!UploadId.safeParse(id).success) return undefined;
    try {
      await using folder = await FolderHandle.walk(this.#root, ['uploads', id]);
      return (await folder.readFile(name, maxBytes)).bytes;
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return undefined;
      throw error;
    }
  }
}

async function writeNew(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content, { flag: 'wx', flush: true, mode: 0o644 });
}
