import { rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoredTurn, TurnStep, type AcceptedTurn } from '@concierge/contract';
import {
  appendLines,
  ignoreMissing,
  isSystemError,
  keepFolders,
  lstatIfThere,
  makeStoreFolder,
  namesIn,
  parseJson,
  parseLines,
  readFreshIfThere,
  readIfThere,
  removeOldTemporaries,
  temporaryMaxAgeMs,
  temporaryPrefix,
  type CreatedFiles,
  type FileWriter,
  type FolderSync,
} from '@concierge/files';
import { failpoint, type Log } from '@concierge/runtime';

const journalSuffix = '.journal.jsonl';
const cancelSuffix = '.cancel';
const turnSuffix = '.json';

export interface InboxItem {
  readonly turnId: string;
  /** When it was accepted, by the file system's clock. */
  readonly mtimeMs: number;
}

export interface InboxOptions {
  /** tenants/<id>/inbox */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly writer: FileWriter;
  readonly log: Log;
}

/**
 * What has been accepted and is not in a session file yet. A turn is accepted when its file is here and on disk, and
 * not before. Beside it: a journal of the steps that must not run twice, and a mark when it is to be cancelled.
 */
export class Inbox {
  readonly #folder: string;
  readonly #folders: FolderSync;
  readonly #writer: FileWriter;
  readonly #log: Log;

  constructor({ folder, folders, writer, log }: InboxOptions) {
    this.#folder = folder;
    this.#folders = folders;
    this.#writer = writer;
    this.#log = log;
  }

  /**
   * After it returns the turn is accepted, also when another process wrote the file: `exists` means that a turn with
   * this id was here before. `isUnique`: the id was drawn at random just now, so that no other turn can have it and no
   * look is needed.
   * @throws AppError not_found, when there is no such tenant
   */
  async accept(turn: AcceptedTurn, { isUnique = false }: { readonly isUnique?: boolean } = {}): Promise<'accepted' | 'exists'> {
    const file = { ...toInboxFile(turn), folder: this.#folder, folders: this.#folders };
    const write = async (): Promise<boolean> => (isUnique ? this.#writer.replace(file).then(() => true) : this.#writer.create(file));
    const created = await write().catch(async (error: unknown) => {
      if (!isSystemError(error, 'ENOENT')) throw error;
      await this.#makeFolder();
      return write();
    });
    await failpoint('inbox.after-file');
    return created ? 'accepted' : 'exists';
  }

  /**
   * As `accept`, of several in their order: with one sync of the folder, and never one without those before it,
   * whenever the process ends.
   * @returns what became of each; with a `failure`, only of those before the one that failed
   */
  async acceptInOrder(turns: readonly AcceptedTurn[]): Promise<CreatedFiles> {
    const batch = { folder: this.#folder, folders: this.#folders, files: turns.map((turn) => toInboxFile(turn)) };
    let written = await this.#writer.createInOrder(batch);
    if (isSystemError(written.failure, 'ENOENT') && written.created.length === 0) {
      await this.#makeFolder();
      written = await this.#writer.createInOrder(batch);
    }
    await failpoint('inbox.after-file');
    return written;
  }

  /** A backup without its empty folders: only then is the folder looked for. */
  async #makeFolder(): Promise<void> {
    await keepFolders(await makeStoreFolder(this.#folder, { store: this.#folder }), this.#folders);
  }

  /** Whether it is accepted and not yet answered. */
  async has(turnId: string): Promise<boolean> {
    return isTurnId(turnId) && (await lstatIfThere(this.#toInboxPath(turnId, turnSuffix))) !== undefined;
  }

  /** undefined when it is not here, or no longer. A file that a damaged disk has spoilt is set aside and reported. */
  async read(turnId: string): Promise<AcceptedTurn | undefined> {
    if (!isTurnId(turnId)) return undefined;
    const path = this.#toInboxPath(turnId, turnSuffix);
    const text = await readFreshIfThere(path);
    if (text === undefined) return undefined;
    const parsed = parseJson(StoredTurn, text);
    if (parsed.status === 'ok') return toAcceptedTurn(parsed.value);
    this.#log.error({ turnId, reason: parsed.reason }, 'inbox file is damaged and was set aside');
    await ignoreMissing(rename(path, `${path}.broken`));
    return undefined;
  }

  /** In no order. One directory read and one `stat` per turn; see `turnIds` for less. */
  async list(): Promise<InboxItem[]> {
    const items: InboxItem[] = [];
    for (const turnId of await this.turnIds()) {
      const facts = await stat(this.#toInboxPath(turnId, turnSuffix)).catch(() => undefined);
      if (facts !== undefined) items.push({ turnId, mtimeMs: facts.mtimeMs });
    }
    return items;
  }

  /** In no order. One directory read. */
  async turnIds(): Promise<string[]> {
    return (await this.#names()).filter(isTurnFile).map((name) => name.slice(0, -turnSuffix.length));
  }

  /** On disk when it returns. Marking a turn that is not here, or twice, does no harm. */
  async markCancelled(turnId: string): Promise<void> {
    await writeFile(this.#toInboxPath(turnId, cancelSuffix), '', { mode: 0o600 });
    await this.#folders.sync(this.#folder);
  }

  async isCancelled(turnId: string): Promise<boolean> {
    return isTurnId(turnId) && (await stat(this.#toInboxPath(turnId, cancelSuffix)).catch(() => undefined)) !== undefined;
  }

  /** On disk when it returns. */
  async appendJournal(turnId: string, steps: readonly TurnStep[]): Promise<void> {
    const lines = steps.map((step) => JSON.stringify(step));
    await appendLines(this.#toInboxPath(turnId, journalSuffix), lines, { path: this.#folder, folders: this.#folders });
  }

  /** In the order in which they were written; a line that a crash tore is skipped, nothing was done on its strength. */
  async readJournal(turnId: string): Promise<TurnStep[]> {
    return parseLines(TurnStep, (await readIfThere(this.#toInboxPath(turnId, journalSuffix))) ?? '');
  }

  /**
   * Call when the session that contains the turn is published. The turn's own file goes last: its removal completes the
   * turn.
   */
  async remove(turnId: string): Promise<void> {
    // Most turns have neither: to look is a tenth of an unlink that fails.
    for (const suffix of [journalSuffix, cancelSuffix]) {
      const path = this.#toInboxPath(turnId, suffix);
      if ((await lstatIfThere(path)) !== undefined) await ignoreMissing(unlink(path));
    }
    await ignoreMissing(unlink(this.#toInboxPath(turnId, turnSuffix)));
  }

  /** Clears away temporaries of writers that died, and journals and marks whose turn has gone. */
  async sweep(olderThanMs = temporaryMaxAgeMs): Promise<void> {
    const names = await this.#names();
    const turns = new Set(names.filter(isTurnFile).map((name) => name.slice(0, -turnSuffix.length)));
    const orphans = names.filter((name) => {
      const match = /^(?<turnId>.+?)(?:\.journal\.jsonl|\.cancel)$/u.exec(name);
      return match?.groups?.['turnId'] !== undefined && !turns.has(match.groups['turnId']);
    });
    const temporaries = names.filter((name) => name.startsWith(temporaryPrefix));
    await removeOldTemporaries(this.#folder, [...temporaries, ...orphans], olderThanMs);
  }

  async #names(): Promise<string[]> {
    return namesIn(this.#folder);
  }

  #toInboxPath(turnId: string, suffix: string): string {
    return join(this.#folder, toFileName(turnId, suffix));
  }
}

/** Clients may ask for a turn by any text; what is written has an id that the service made. */
function isTurnId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,200}$/u.test(text);
}

function toFileName(turnId: string, suffix: string): string {
  if (!isTurnId(turnId)) throw new Error('not a turn id');
  return `${turnId}${suffix}`;
}

function toInboxFile({ tenantId, channelMessage, ...turn }: AcceptedTurn): { readonly name: string; readonly content: string } {
  const stored: StoredTurn = { ...turn, accountId: tenantId, ...(channelMessage !== undefined && { chatApp: channelMessage }) };
  return { name: toFileName(turn.turnId, turnSuffix), content: JSON.stringify(stored) };
}

function isTurnFile(name: string): boolean {
  return name.endsWith(turnSuffix) && isTurnId(name.slice(0, -turnSuffix.length));
}

function toAcceptedTurn({ accountId, chatApp, ...turn }: StoredTurn): AcceptedTurn {
  return { ...turn, tenantId: accountId, ...(chatApp !== undefined && { channelMessage: chatApp }) };
}
