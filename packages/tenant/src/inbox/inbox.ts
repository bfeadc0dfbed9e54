import { rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoredTurn, toStoredSchema, TurnStep, type AcceptedTurn } from '@concierge/contract';
import {
  appendLines,
  assertNotLater,
  createFile,
  createFiles,
  ignoreMissing,
  isSystemError,
  keepFolders,
  lstatIfThere,
  makeStoreFolder,
  namesIn,
  parseAllLines,
  parseJson,
  readFreshIfThere,
  readIfThere,
  removeOldTemporaries,
  replaceFile,
  temporaryMaxAgeMs,
  temporaryPrefix,
  type CreatedFiles,
  type FolderSync,
  type Parsed,
} from '@concierge/files';
import { failpoint, type Log } from '@concierge/runtime';

const journalSuffix = '.journal.jsonl';
const cancelSuffix = '.cancel';
const turnSuffix = '.json';
const storedTurn = toStoredSchema(StoredTurn);

export interface InboxItem {
  readonly turnId: string;
  /** When it was accepted, by the file system's clock. */
  readonly mtimeMs: number;
}

/**
 * Turns that were accepted a moment ago and have no inbox file yet: they are in the write-ahead log of the process that
 * accepted them (packages/turn, process-log.ts).
 */
export interface LoggedTurns {
  /** What its inbox file will contain; undefined when it has one, has ended, or was never accepted. */
  read(tenantId: string, turnId: string, hasEnded: HasEnded): Promise<string | undefined>;
  turnIds(tenantId: string, hasEnded: HasEnded): Promise<readonly string[]>;
}

/** Whether a session contains the turn: the disk alone does not show that a turn of a log has ended. */
export type HasEnded = (turn: AcceptedTurn) => Promise<boolean>;

export interface InboxOptions {
  /** tenants/<id>/inbox */
  readonly folder: string;
  /** Without it only what has a file is here. */
  readonly logged?: { readonly turns: LoggedTurns; readonly tenantId: string; readonly hasEnded: HasEnded } | undefined;
  readonly folders: FolderSync;
  readonly log: Log;
}

/**
 * What has been accepted and is not in a session file yet. A turn is accepted when it is on disk, in its file here or
 * in the log of the process that accepted it, and not before. Beside the file: a journal of the steps that must not run
 * twice, and a mark when it is to be cancelled.
 */
export class Inbox {
  readonly #logged: InboxOptions['logged'];
  readonly #folder: string;
  readonly #folders: FolderSync;
  readonly #log: Log;

  constructor({ logged, folder, folders, log }: InboxOptions) {
    this.#logged = logged;
    this.#folder = folder;
    this.#folders = folders;
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
    const created = await this.#inFolder(async () => (isUnique ? replaceFile(file).then(() => true) : createFile(file)));
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
    let written = await createFiles(batch);
    if (isSystemError(written.failure, 'ENOENT') && written.created.length === 0) {
      await this.#makeFolder();
      written = await createFiles(batch);
    }
    await failpoint('inbox.after-file');
    return written;
  }

  /** A backup without its empty folders: only then is the folder looked for. */
  async #inFolder<Value>(write: () => Promise<Value>): Promise<Value> {
    try {
      return await write();
    } catch (error) {
      if (!isSystemError(error, 'ENOENT')) throw error;
      await this.#makeFolder();
      return await write();
    }
  }

  async #makeFolder(): Promise<void> {
    await keepFolders(await makeStoreFolder(this.#folder, { store: this.#folder }), this.#folders);
  }

  /** Whether it is accepted and not yet answered. */
  async has(turnId: string): Promise<boolean> {
    if (!isTurnId(turnId)) return false;
    // The log first: a turn leaves it when it has its file.
    if ((await this.#readLogged(turnId)) !== undefined) return true;
    return this.hasFile(turnId);
  }

  /** As `has`, but only of a turn that has its file. */
  async hasFile(turnId: string): Promise<boolean> {
    return isTurnId(turnId) && (await lstatIfThere(this.#toInboxPath(turnId, turnSuffix))) !== undefined;
  }

  /**
   * undefined when it is not here, or no longer. A file that a damaged disk has spoilt is set aside and reported.
   * @throws LaterVersionError
   */
  async read(turnId: string): Promise<AcceptedTurn | undefined> {
    if (!isTurnId(turnId)) return undefined;
    const logged = await this.#readLogged(turnId);
    if (logged !== undefined) return parseTurn(logged);
    const path = this.#toInboxPath(turnId, turnSuffix);
    const text = await readFreshIfThere(path);
    if (text === undefined) return undefined;
    const parsed = readTurn(text);
    assertNotLater(parsed, path);
    if (parsed.status === 'ok') return parsed.value;
    this.#log.error({ turnId, reason: parsed.reason }, 'inbox file is damaged and was set aside');
    await ignoreMissing(rename(path, `${path}.broken`));
    return undefined;
  }

  /** In no order. One directory read and one `stat` per turn; see `turnIds` for less. */
  async list(): Promise<InboxItem[]> {
    const logged = new Set(await this.#loggedTurnIds());
    const items: InboxItem[] = Array.from(logged, (turnId) => ({ turnId, mtimeMs: Date.now() }));
    for (const turnId of await this.filedTurnIds()) {
      if (logged.has(turnId)) continue;
      const facts = await stat(this.#toInboxPath(turnId, turnSuffix)).catch(() => undefined);
      if (facts !== undefined) items.push({ turnId, mtimeMs: facts.mtimeMs });
    }
    return items;
  }

  /** In no order. */
  async turnIds(): Promise<string[]> {
    const logged = await this.#loggedTurnIds();
    return [...new Set([...logged, ...(await this.filedTurnIds())])];
  }

  /** Of those that have a file. In no order; one directory read. */
  async filedTurnIds(): Promise<string[]> {
    return (await this.#names()).filter(isTurnFile).map((name) => name.slice(0, -turnSuffix.length));
  }

  /** On disk when it returns. Marking a turn that is not here, or twice, does no harm. */
  async markCancelled(turnId: string): Promise<void> {
    await this.#inFolder(async () => writeFile(this.#toInboxPath(turnId, cancelSuffix), '', { mode: 0o600 }));
    await this.#folders.sync(this.#folder);
  }

  async isCancelled(turnId: string): Promise<boolean> {
    return isTurnId(turnId) && (await stat(this.#toInboxPath(turnId, cancelSuffix)).catch(() => undefined)) !== undefined;
  }

  /** On disk when it returns. */
  async appendJournal(turnId: string, steps: readonly TurnStep[]): Promise<void> {
    const lines = steps.map((step) => JSON.stringify(step));
    const path = this.#toInboxPath(turnId, journalSuffix);
    await this.#inFolder(async () => appendLines(path, lines, { path: this.#folder, folders: this.#folders }));
  }

  /** Turns that have a journal; in no order, one directory read. */
  async journaledTurnIds(): Promise<string[]> {
    return (await this.#names()).filter((name) => name.endsWith(journalSuffix)).map((name) => name.slice(0, -journalSuffix.length));
  }

  /**
   * In the order in which they were written; a line that a crash tore is skipped, nothing was done on its strength.
   * @throws LaterVersionError
   */
  async readJournal(turnId: string): Promise<TurnStep[]> {
    const path = this.#toInboxPath(turnId, journalSuffix);
    return parseAllLines(TurnStep, { text: (await readIfThere(path)) ?? '', path });
  }

  /**
   * Call when the session that contains the turn is published. The turn's own file goes last: its removal completes the
   * turn.
   */
  async remove(turnId: string): Promise<void> {
    // Most turns have none of them: to look is a tenth of an unlink that fails.
    for (const suffix of [journalSuffix, cancelSuffix, turnSuffix]) {
      const path = this.#toInboxPath(turnId, suffix);
      if ((await lstatIfThere(path)) !== undefined) await ignoreMissing(unlink(path));
    }
  }

  /** Clears away temporaries of writers that died, and journals and marks whose turn has gone. */
  async sweep(olderThanMs = temporaryMaxAgeMs): Promise<void> {
    const names = await this.#names();
    const turns = new Set(names.filter(isTurnFile).map((name) => name.slice(0, -turnSuffix.length)));
    // What a turn without a file has is younger than `olderThanMs`.
    const orphans = names.filter((name) => {
      const match = /^(?<turnId>.+?)(?:\.journal\.jsonl|\.cancel)$/u.exec(name);
      return match?.groups?.['turnId'] !== undefined && !turns.has(match.groups['turnId']);
    });
    const temporaries = names.filter((name) => name.startsWith(temporaryPrefix));
    await removeOldTemporaries(this.#folder, [...temporaries, ...orphans], olderThanMs);
  }

  async #readLogged(turnId: string): Promise<string | undefined> {
    return this.#logged?.turns.read(this.#logged.tenantId, turnId, this.#logged.hasEnded);
  }

  async #loggedTurnIds(): Promise<readonly string[]> {
    return (await this.#logged?.turns.turnIds(this.#logged.tenantId, this.#logged.hasEnded)) ?? [];
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

function toInboxFile(turn: AcceptedTurn): { readonly name: string; readonly content: string } {
  return { name: toFileName(turn.turnId, turnSuffix), content: renderTurn(turn) };
}

/** The content of the turn's file. */
export function renderTurn({ tenantId, channelMessage, ...turn }: AcceptedTurn): string {
  const stored: StoredTurn = { ...turn, accountId: tenantId, ...(channelMessage !== undefined && { chatApp: channelMessage }) };
  return JSON.stringify(stored);
}

/** A turn from the content of its file, or undefined when it is none. @throws LaterVersionError */
export function parseTurn(content: string): AcceptedTurn | undefined {
  const parsed = readTurn(content);
  assertNotLater(parsed, 'a turn');
  return parsed.status === 'ok' ? parsed.value : undefined;
}

/** What the content of a turn's file is. */
export function readTurn(content: string): Parsed<AcceptedTurn> {
  const parsed = parseJson(storedTurn, content);
  return parsed.status === 'ok' ? { status: 'ok', value: toAcceptedTurn(parsed.value) } : parsed;
}

function isTurnFile(name: string): boolean {
  return name.endsWith(turnSuffix) && isTurnId(name.slice(0, -turnSuffix.length));
}

function toAcceptedTurn({ accountId, chatApp, ...turn }: StoredTurn): AcceptedTurn {
  return { ...turn, tenantId: accountId, ...(chatApp !== undefined && { channelMessage: chatApp }) };
}
