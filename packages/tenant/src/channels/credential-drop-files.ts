import type { Stats } from 'node:fs';
import { rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { messagingChannels, AppError, toAppName, limits, type MessagingChannel } from '@concierge/contract';
import {
  ignoreMissing,
  isSystemError,
  linkNew,
  lstatIfThere,
  readIfThere,
  toStatSignature,
  temporaryName,
  type FolderSync,
} from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';

/** A change this soon after another may leave the same times behind. */
const racyMs = 1000;

export interface CredentialDropFilesOptions {
  /** tenants/<id>/channels */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly tenantId: string;
  readonly log: Log;
  /** Seals and keeps; on disk when it returns. @throws AppError when these cannot be kept */
  readonly keep: (channel: MessagingChannel, settings: unknown) => Promise<void>;
}

interface Refused {
  readonly signature: string;
  readonly reason: string;
}

/**
 * Credentials that are put beside the bindings as plain JSON: `telegram.json` with the fields that the API takes. They
 * are sealed, kept, and the plain file is removed, in this order; an invalid one is left alone and reported. While
 * nothing changes, a look costs one `lstat` of the folder.
 */
export class CredentialDropFiles {
  readonly #options: CredentialDropFilesOptions;
  readonly #refused = new Map<MessagingChannel, Refused>();
  readonly #turns = new KeyedMutex();
  #seen: string | undefined;

  constructor(options: CredentialDropFilesOptions) {
    this.#options = options;
  }

  async takeOver(): Promise<void> {
    if (await this.#isUnchanged()) return;
    await this.#turns.run('look', async () => this.#look());
  }

  /** Why the file that lies there is not taken over, as of the last look. */
  findDropProblem(channel: MessagingChannel): string | undefined {
    return this.#refused.get(channel)?.reason;
  }

  /** One that was not taken over; false when there is none. */
  async remove(channel: MessagingChannel): Promise<boolean> {
    try {
      await unlink(this.#toDropPath(channel));
    } catch (error) {
      if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return false;
      throw error;
    }
    this.#refused.delete(channel);
    await this.#options.folders.sync(this.#options.folder);
    return true;
  }

  /** A file that was refused may be mended in place, which its folder does not show. */
  async #isUnchanged(): Promise<boolean> {
    if (this.#refused.size > 0) return false;
    const facts = await lstatIfThere(this.#options.folder);
    return facts === undefined || toStatSignature(facts) === this.#seen;
  }

  async #look(): Promise<void> {
    // The time before looking: what is put there while we look is newer than that.
    const facts = await lstatIfThere(this.#options.folder);
    for (const channel of messagingChannels) await this.#lookAt(channel);
    const isSettled = facts !== undefined && facts.ctimeMs < Date.now() - racyMs;
    this.#seen = isSettled ? toStatSignature(facts) : undefined;
  }

  async #lookAt(channel: MessagingChannel): Promise<void> {
    const { tenantId, log } = this.#options;
    const path = this.#toDropPath(channel);
    const facts = await lstatIfThere(path);
    const signature = facts === undefined ? undefined : toStatSignature(facts);
    if (this.#refused.get(channel)?.signature === signature && signature !== undefined) return;
    this.#refused.delete(channel);
    if (facts === undefined || signature === undefined) return;
    const problem = await this.#checkFile(channel, facts);
    if (problem === undefined) {
      log.info({ tenantId, path }, 'a plain file of credentials was sealed and removed');
      return;
    }
    this.#refused.set(channel, { signature, reason: `channels/${toAppName(channel)}.json is left alone: ${problem}` });
    log.warn({ tenantId, path, problem }, 'a plain file of credentials is left alone');
  }

  /** undefined when it is taken over. */
  async #checkFile(channel: MessagingChannel, facts: Stats): Promise<string | undefined> {
    if (!facts.isFile()) return 'it is no regular file';
    if (facts.size > limits.channelFileMaxBytes) return `it has more than ${String(limits.channelFileMaxBytes)} bytes`;
    const text = await readIfThere(this.#toDropPath(channel));
    if (text === undefined) return undefined;
    try {
      await this.#options.keep(channel, parseObject(text));
    } catch (error) {
      if (error instanceof AppError) return describeError(error);
      throw error;
    }
    return this.#removeRead(channel, facts);
  }

  /**
   * Only what was read: another one may have been put there meanwhile, which is then looked at next. Why it is still
   * there, if it is.
   */
  async #removeRead(channel: MessagingChannel, read: Stats): Promise<string | undefined> {
    const { folder, folders } = this.#options;
    const aside = join(folder, temporaryName());
    try {
      await rename(this.#toDropPath(channel), aside);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return undefined;
      // The file has another owner, or is mounted there.
      if (isSystemError(error, 'EBUSY', 'EACCES', 'EPERM', 'EROFS')) return 'its credentials are kept, but it cannot be removed: remove it';
      throw error;
    }
    const found = await lstatIfThere(aside);
    if (found?.ino !== read.ino || found.size !== read.size || found.mtimeMs !== read.mtimeMs)
      await linkNew(aside, this.#toDropPath(channel));
    await ignoreMissing(unlink(aside));
    await folders.sync(folder);
    return undefined;
  }

  #toDropPath(channel: MessagingChannel): string {
    return join(this.#options.folder, `${toAppName(channel)}.json`);
  }
}

/** @throws AppError invalid_request; a parser's message could quote a secret */
function parseObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AppError('invalid_request', 'it is not JSON.');
  }
}

function describeError({ message, errors = [] }: AppError): string {
  return [message, ...errors.map((field) => [field.path, field.message].filter((part) => part !== '').join(' '))].join(' ');
}
