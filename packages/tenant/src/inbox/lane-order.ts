import { mkdir, readdir, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  createFile,
  ignoreMissing,
  isSystemError,
  lstatIfThere,
  namesIn,
  readFreshIfThere,
  temporaryMaxAgeMs,
  temporaryPrefix,
  type FolderSync,
} from '@concierge/files';
import { isHashedName } from '../sessions/session-ids.ts';

export interface LaneOrderOptions {
  /** tenants/<id>/inbox/.order */
  readonly folder: string;
  readonly folders: FolderSync;
}

/** What a session's folder contains. */
export interface OrderedTurns {
  /** Turns with a number, the lowest first: after all turns without one. */
  readonly numbered: readonly string[];
  /** Turns that must have a place in the lane, wherever it is: before all numbered ones. */
  readonly mentioned: readonly string[];
}

const numberDigits = 8;

/**
 * The order of acceptance on disk, for sessions whose order Redis could not keep
 * (docs/decisions/0004-order-of-acceptance.md). A session that Redis keeps in order has no folder here, and one look
 * that finds nothing is all it costs. A turn whose enqueueing failed takes the session's next number before it is
 * acknowledged, and so does each later turn while a folder is there. The number is a file that is created exclusively:
 * no clock decides.
 */
export class LaneOrder {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor({ folder, folders }: LaneOrderOptions) {
    this.#folder = folder;
    this.#folders = folders;
  }

  /** Whether a turn of the session has a number. */
  async isUsed(sessionId: string): Promise<boolean> {
    return (await lstatIfThere(this.#toLanePath(sessionId))) !== undefined;
  }

  /** Gives the turn the session's next number, unless it has one. On disk when it returns. */
  async claim(sessionId: string, turnId: string): Promise<void> {
    for (;;) {
      const numbers = await this.#read(sessionId);
      if (numbers.some((number) => number.turnId === turnId)) return;
      const next = (numbers.at(-1)?.number ?? 0) + 1;
      if (await this.#create(sessionId, String(next).padStart(numberDigits, '0'), turnId)) return;
    }
  }

  /** Notes that the turn must be in its lane, without its position. On disk when it returns. */
  async mention(sessionId: string, turnId: string): Promise<void> {
    while (!(await this.#create(sessionId, toMention(turnId), turnId))) {
      if ((await lstatIfThere(join(this.#toLanePath(sessionId), toMention(turnId)))) !== undefined) return;
    }
  }

  async read(sessionId: string): Promise<OrderedTurns> {
    const names = await namesIn(this.#toLanePath(sessionId));
    const numbered = (await this.#read(sessionId, names)).map(({ turnId }) => turnId);
    return { numbered: [...new Set(numbered)], mentioned: names.filter(isMention).map(turnOfMention) };
  }

  /** Sessions that have a folder. */
  async sessionIds(): Promise<string[]> {
    return (await namesIn(this.#folder)).filter(isHashedName);
  }

  /** Call when these turns are answered or were refused. The session's folder goes with the last of them. */
  async remove(sessionId: string, turnIds: readonly string[]): Promise<void> {
    const folder = this.#toLanePath(sessionId);
    const gone = new Set(turnIds);
    const numbers = (await this.#read(sessionId)).filter(({ turnId }) => gone.has(turnId));
    for (const name of [...numbers.map(({ name: number }) => number), ...turnIds.map(toMention)]) {
      await ignoreMissing(unlink(join(folder, name)));
    }
    await this.#removeEmpty(folder);
  }

  /** Clears away what processes that died left behind: numbers of turns that are not in the inbox. */
  async sweep(isInInbox: (turnId: string) => boolean, olderThanMs = temporaryMaxAgeMs): Promise<void> {
    for (const sessionId of await this.sessionIds()) {
      const folder = this.#toLanePath(sessionId);
      for (const name of await namesIn(folder)) {
        const facts = await stat(join(folder, name)).catch(() => undefined);
        if (facts === undefined || facts.mtimeMs > Date.now() - olderThanMs) continue;
        const turnId = name.startsWith(temporaryPrefix) ? undefined : await this.#readTurnId(folder, name);
        if (turnId === undefined || !isInInbox(turnId)) await ignoreMissing(unlink(join(folder, name)));
      }
      await this.#removeEmpty(folder);
    }
  }

  /** @returns false when the name is taken, or the folder was removed meanwhile */
  async #create(sessionId: string, name: string, turnId: string): Promise<boolean> {
    const folder = this.#toLanePath(sessionId);
    try {
      const first = await mkdir(folder, { recursive: true, mode: 0o700 });
      const created = await createFile({ folder, name, content: turnId, folders: this.#folders });
      // The name of the folder itself, for a machine that loses its power.
      await this.#folders.sync(this.#folder);
      if (first !== undefined) await this.#folders.sync(join(this.#folder, '..'));
      return created;
    } catch (error) {
      if (isSystemError(error, 'ENOENT') && (await lstatIfThere(join(this.#folder, '..'))) !== undefined) return false;
      throw error;
    }
  }

  async #read(
    sessionId: string,
    names?: readonly string[],
  ): Promise<{ readonly name: string; readonly number: number; readonly turnId: string }[]> {
    const folder = this.#toLanePath(sessionId);
    const numbers = [];
    for (const name of (names ?? (await namesIn(folder))).filter(isNumber).toSorted()) {
      const turnId = await this.#readTurnId(folder, name);
      if (turnId !== undefined) numbers.push({ name, number: Number(name), turnId });
    }
    return numbers;
  }

  async #readTurnId(folder: string, name: string): Promise<string | undefined> {
    return isMention(name) ? turnOfMention(name) : readFreshIfThere(join(folder, name));
  }

  async #removeEmpty(folder: string): Promise<void> {
    try {
      if ((await readdir(folder)).length === 0) await rmdir(folder);
    } catch (error) {
      // Another process removed it, or has put a number into it.
      if (!isSystemError(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }

  #toLanePath(sessionId: string): string {
    if (!isHashedName(sessionId)) throw new Error('not a session id');
    return join(this.#folder, sessionId);
  }
}

const mentionPrefix = 'turn-';

function toMention(turnId: string): string {
  return `${mentionPrefix}${turnId}`;
}

function isMention(name: string): boolean {
  return name.startsWith(mentionPrefix);
}

function turnOfMention(name: string): string {
  return name.slice(mentionPrefix.length);
}

function isNumber(name: string): boolean {
  return /^\d{8}$/u.test(name);
}

/** Older generations are removed, so that the folder stays small; the newest is what counts. */
const generationsKept = 3;

/**
 * Numbers that only rise, on disk: a file for each, created exclusively. What is derived from them rises with no clock.
 */
export class Generations {
  readonly #folder: string;
  readonly #folders: FolderSync;

  constructor({ folder, folders }: { readonly folder: string; readonly folders: FolderSync }) {
    this.#folder = folder;
    this.#folders = folders;
  }

  /** On disk when it returns. */
  async next(): Promise<number> {
    if ((await mkdir(this.#folder, { recursive: true, mode: 0o700 })) !== undefined) await this.#folders.sync(dirname(this.#folder));
    for (;;) {
      const drawn = await this.#drawn();
      const number = (drawn.at(-1) ?? 0) + 1;
      if (!(await createFile({ folder: this.#folder, name: String(number), content: '', folders: this.#folders }))) continue;
      for (const old of drawn.slice(0, -generationsKept)) await ignoreMissing(unlink(join(this.#folder, String(old))));
      return number;
    }
  }

  /** In rising order. */
  async #drawn(): Promise<number[]> {
    const names = (await namesIn(this.#folder)).filter((name) => /^[1-9]\d*$/u.test(name));
    return names.map(Number).toSorted((left, right) => left - right);
  }
}
