import { constants } from 'node:fs';
import { open, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DeliveryStep, OutboundMessage } from '@concierge/contract';
import {
  appendLines,
  createFile,
  ignoreMissing,
  isSystemError,
  keepFolders,
  lstatIfThere,
  makeStoreFolder,
  namesIn,
  parseJson,
  parseLines,
  readIfThere,
  removeFolderIn,
  removeOldTemporaries,
  replaceFile,
  sweepTemporaries,
  temporaryPrefix,
  type FolderSync,
} from '@concierge/files';
import type { Log } from '@concierge/runtime';
import { z } from 'zod';
import { Delivery } from './delivery.ts';
import { OutboxClaims, type ClaimedTry, type ClaimKey } from './outbox-claims.ts';

const namePattern = /^m_[0-9a-f]{32}$/u;
const lanePattern = /^[0-9a-f]{12}$/u;
const dayPattern = /^\d{4}-\d{2}-\d{2}$/u;
/** A folder of a lane goes when it is empty, perhaps right before another process writes a message into it. */
const attemptsMax = 10;

const MessageLine = z.object({ kind: z.literal('message'), message: OutboundMessage });

export interface OutboxFilesOptions {
  readonly tenantId: string;
  /** tenants/<id>/outbox */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly log: Log;
}

export type EndedFolder = 'settled' | 'dead';

/**
 * Where messages lie. On its way: `<lane>/<id>.json`, its journal beside it, and a claim `<id>.<part>.<try>` for each
 * try, which can be made once. Ended: one file, the message and its journal, in `settled/<day of acceptance>` or in
 * `dead`.
 */
export class OutboxFiles {
  readonly #options: OutboxFilesOptions;
  readonly #claims: OutboxClaims;

  constructor(options: OutboxFilesOptions) {
    this.#options = options;
    this.#claims = new OutboxClaims(options.folders);
  }

  /** On disk when it returns. False when it was there. */
  async create(message: OutboundMessage): Promise<boolean> {
    const folder = this.#laneFolder(readLaneId(message.id));
    const content = `${JSON.stringify(message, undefined, 2)}\n`;
    return this.#inFolder(folder, async () => createFile({ ...this.#write(folder, `${message.id}.json`), content }));
  }

  async lanes(): Promise<string[]> {
    return (await namesIn(this.#options.folder)).filter((name) => lanePattern.test(name)).toSorted();
  }

  /** Ids of what is on its way in a lane, in no order. */
  async listLaneIds(lane: string): Promise<string[]> {
    if (!lanePattern.test(lane)) return [];
    return idsAmong(await namesIn(this.#laneFolder(lane)), '.json');
  }

  /** The messages in a lane, in order of acceptance. What a damaged disk has spoilt is set aside. */
  async waitingIn(lane: string): Promise<OutboundMessage[]> {
    const found = await Promise.all((await this.listLaneIds(lane)).map(async (id) => this.waiting(id)));
    return found
      .filter((message) => message !== undefined)
      .toSorted((a, b) => a.acceptedAt.localeCompare(b.acceptedAt) || a.id.localeCompare(b.id));
  }

  async waiting(id: string): Promise<OutboundMessage | undefined> {
    if (!isMessageId(id)) return undefined;
    const path = this.#messagePath(id);
    const text = await readIfThere(path);
    if (text === undefined) return undefined;
    const parsed = parseJson(OutboundMessage, text);
    if (parsed.status === 'ok') return parsed.value;
    const { tenantId, log } = this.#options;
    log.error({ tenantId, path, reason: parsed.reason }, 'a message in the outbox is damaged and was set aside');
    await ignoreMissing(rename(path, join(this.#options.folder, `${id}.json.broken`)));
    return undefined;
  }

  /** One that is on its way, with what became of it so far. */
  async onItsWay(message: OutboundMessage): Promise<Delivery> {
    const { id } = message;
    const names = await namesIn(this.#laneFolder(readLaneId(id)));
    const steps = parseLines(DeliveryStep, (await readIfThere(this.#journalPath(id))) ?? '');
    return new Delivery(message, steps, OutboxClaims.among(names, id));
  }

  /** Wherever it is; undefined when there is none (any more). */
  async find(id: string): Promise<Delivery | undefined> {
    const message = await this.waiting(id);
    if (message !== undefined) return this.onItsWay(message);
    const path = await this.#endedPath(id);
    if (path !== undefined) return this.#readEnded(path);
    // It may have ended, or been taken up again, between the two looks.
    const again = (await this.waiting(id)) ?? (await this.#repaired(id));
    return again === undefined ? undefined : this.onItsWay(again);
  }

  /**
   * True once for each try, and on disk then; false when another process has the try, or the message has gone from its
   * lane.
   */
  async claim(id: string, tried: ClaimedTry): Promise<boolean> {
    try {
      const isOurs = await this.#claims.make(this.#toClaimKey(id, tried));
      // Claims go with their message: one that can be made because the message has ended meanwhile is none.
      return isOurs && (await isThere(this.#messagePath(id)));
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return false;
      throw error;
    }
  }

  /**
   * The request of a claim leaves now. False when it must not: another worker has taken over, or the message has gone
   * from its lane.
   */
  async leave(id: string, tried: ClaimedTry): Promise<boolean> {
    return this.#claims.leave(this.#toClaimKey(id, tried));
  }

  /** What has left under a claim whose holder is gone; nothing leaves under it any more. */
  async takeOver(id: string, tried: ClaimedTry): Promise<'nothing' | 'perhaps'> {
    return this.#claims.takeOver(this.#toClaimKey(id, tried));
  }

  /**
   * Adds to what is known of a message, wherever it is by now. On disk when it returns; false when the message is gone.
   */
  async append(id: string, steps: readonly DeliveryStep[]): Promise<boolean> {
    const lines = steps.map((step) => JSON.stringify(step));
    const folder = { path: this.#laneFolder(readLaneId(id)), folders: this.#options.folders };
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      if (await isThere(this.#messagePath(id))) {
        try {
          await appendLines(this.#journalPath(id), lines, folder);
        } catch (error) {
          if (!isSystemError(error, 'ENOENT')) throw error;
        }
        // The process that ends a message looks for lines once more after it has left its lane; what comes later goes
        // to the message's new place.
        if (await isThere(this.#messagePath(id))) return true;
        await ignoreMissing(unlink(this.#journalPath(id)));
      }
      const path = await this.#endedPath(id);
      if (path !== undefined && (await appendToExisting(path, lines))) return true;
      if (path === undefined && !(await isThere(this.#messagePath(id)))) return false;
    }
    throw new Error(`message ${id} moves faster than it can be written to`);
  }

  /** Moves it out of its lane. After a crash in the middle another process repeats this. */
  async end(delivery: Delivery, ended: EndedFolder): Promise<void> {
    const { id } = delivery.message;
    const folder = this.#endedFolder(ended, delivery.message);
    const lines = [JSON.stringify({ kind: 'message', message: delivery.message }), ...delivery.steps.map((step) => JSON.stringify(step))];
    const path = join(folder, `${id}.jsonl`);
    if (await isThere(path)) await this.#addMissing(path, lines);
    else await this.#inFolder(folder, async () => replaceFile({ ...this.#write(folder, `${id}.jsonl`), content: `${lines.join('\n')}\n` }));
    await ignoreMissing(unlink(join(this.#endedFolder(ended === 'dead' ? 'settled' : 'dead', delivery.message), `${id}.jsonl`)));
    await ignoreMissing(unlink(this.#messagePath(id)));
    // A result that was reported while this was written.
    const late = parseLines(DeliveryStep, (await readIfThere(this.#journalPath(id))) ?? '').slice(delivery.steps.length);
    if (late.length > 0)
      await this.#addMissing(
        path,
        late.map((step) => JSON.stringify(step)),
      );
    await this.#clearLane(id);
  }

  /** A settled one that has failed after all; nothing happens to one that is not settled. */
  async moveToDead({ message }: Delivery): Promise<void> {
    const from = join(this.#endedFolder('settled', message), `${message.id}.jsonl`);
    if (!(await isThere(from))) return;
    const folder = this.#endedFolder('dead', message);
    await this.#makeFolder(folder);
    await ignoreMissing(rename(from, join(folder, `${message.id}.jsonl`)));
    await this.#options.folders.sync(folder);
  }

  /**
   * Puts it back into its lane, with this step added. False when another process has taken it up. Its file becomes the
   * journal in one step, so that only one can do it; before that come claims of all tries so far: a process frozen
   * since then makes none of them anew.
   */
  async takeUp(delivery: Delivery, step: DeliveryStep): Promise<boolean> {
    const { message } = delivery;
    const { id } = message;
    const folder = this.#laneFolder(readLaneId(id));
    const dead = join(this.#endedFolder('dead', message), `${id}.jsonl`);
    if (!(await appendToExisting(dead, [JSON.stringify(step)]))) return false;
    const claims = (delivery.parts ?? []).flatMap((part, index) =>
      Array.from({ length: part.tries }, (_, tried) => this.#toClaimKey(id, { part: index, try: tried + 1 })),
    );
    return this.#inFolder(folder, async () => {
      for (const claim of claims) {
        await this.#claims.make(claim);
        await this.#claims.voidIt(claim);
      }
      try {
        await rename(dead, this.#journalPath(id));
      } catch (error) {
        if (isSystemError(error, 'ENOENT') && !(await isThere(dead))) return false;
        throw error;
      }
      await this.#rewrite(message);
      return true;
    });
  }

  /** Days of which there are settled messages, the last one first. */
  async days(): Promise<string[]> {
    return (await namesIn(join(this.#options.folder, 'settled')))
      .filter((name) => dayPattern.test(name))
      .toSorted()
      .toReversed();
  }

  async settledIds(day: string): Promise<string[]> {
    return idsAmong(await namesIn(join(this.#options.folder, 'settled', day)), '.jsonl');
  }

  async deadIds(): Promise<string[]> {
    return idsAmong(await namesIn(join(this.#options.folder, 'dead')), '.jsonl');
  }

  async readSettled(day: string, id: string): Promise<Delivery | undefined> {
    return this.#readEnded(join(this.#options.folder, 'settled', day, `${id}.jsonl`));
  }

  async readDead(id: string): Promise<Delivery | undefined> {
    return this.#readEnded(join(this.#options.folder, 'dead', `${id}.jsonl`));
  }

  async removeDay(day: string): Promise<void> {
    await removeFolderIn(join(this.#options.folder, 'settled'), day);
  }

  async removeDead(id: string): Promise<void> {
    await ignoreMissing(unlink(join(this.#options.folder, 'dead', `${id}.jsonl`)));
  }

  /**
   * Clears away what writers that died in the middle left: temporaries, journals and claims without a message, empty
   * lanes.
   */
  async sweep(): Promise<void> {
    for (const lane of await this.lanes()) {
      const folder = this.#laneFolder(lane);
      const names = await namesIn(folder);
      for (const id of idsAmong(names, '.journal.jsonl')) await this.#repaired(id);
      const waiting = new Set(await this.listLaneIds(lane));
      const orphans = names.filter((name) => {
        const id = OutboxClaims.readMessageId(name) ?? /^(?<id>m_[0-9a-f]{32})\.journal\.jsonl$/u.exec(name)?.groups?.['id'];
        return id === undefined ? name.startsWith(temporaryPrefix) : !waiting.has(id);
      });
      await removeOldTemporaries(folder, orphans);
      await removeIfEmpty(folder);
    }
    await sweepTemporaries(join(this.#options.folder, 'dead'));
    for (const day of await this.days()) await sweepTemporaries(join(this.#options.folder, 'settled', day));
  }

  /** A process died while taking it up: its journal, which begins with the message, is back, and it is nowhere else. */
  async #repaired(id: string): Promise<OutboundMessage | undefined> {
    if (!isMessageId(id) || (await isThere(this.#messagePath(id)))) return undefined;
    const [first] = parseLines(MessageLine, ((await readIfThere(this.#journalPath(id))) ?? '').split('\n', 1)[0] ?? '');
    if (first === undefined || (await this.#endedPath(id)) !== undefined) return undefined;
    await this.#rewrite(first.message);
    return first.message;
  }

  async #rewrite(message: OutboundMessage): Promise<void> {
    const folder = this.#laneFolder(readLaneId(message.id));
    await createFile({ ...this.#write(folder, `${message.id}.json`), content: `${JSON.stringify(message, undefined, 2)}\n` });
  }

  async #clearLane(id: string): Promise<void> {
    const folder = this.#laneFolder(readLaneId(id));
    for (const name of await namesIn(folder)) if (name.startsWith(`${id}.`)) await ignoreMissing(unlink(join(folder, name)));
    await removeIfEmpty(folder);
  }

  async #addMissing(path: string, lines: readonly string[]): Promise<void> {
    const known = new Set(((await readIfThere(path)) ?? '').split('\n'));
    const missing = lines.filter((line) => !known.has(line));
    if (missing.length > 0) await appendToExisting(path, missing);
  }

  async #readEnded(path: string): Promise<Delivery | undefined> {
    const text = await readIfThere(path);
    if (text === undefined) return undefined;
    const [first] = parseLines(MessageLine, text.split('\n', 1)[0] ?? '');
    return first === undefined ? undefined : new Delivery(first.message, parseLines(DeliveryStep, text));
  }

  async #endedPath(id: string): Promise<string | undefined> {
    if (!isMessageId(id)) return undefined;
    const dead = join(this.#options.folder, 'dead', `${id}.jsonl`);
    if (await isThere(dead)) return dead;
    for (const day of await this.days()) {
      const path = join(this.#options.folder, 'settled', day, `${id}.jsonl`);
      if (await isThere(path)) return path;
    }
    return undefined;
  }

  async #inFolder<Result>(folder: string, write: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      await this.#makeFolder(folder);
      try {
        return await write();
      } catch (error) {
        if (!isSystemError(error, 'ENOENT') || attempt === attemptsMax) throw error;
      }
    }
  }

  /** The folder's own name must last as long as what is in it. */
  async #makeFolder(folder: string): Promise<void> {
    await keepFolders(await makeStoreFolder(folder, { store: this.#options.folder, mode: 0o700 }), this.#options.folders);
  }

  #write(folder: string, name: string): { folder: string; name: string; folders: FolderSync } {
    return { folder, name, folders: this.#options.folders };
  }

  #toClaimKey(id: string, tried: ClaimedTry): ClaimKey {
    return { id, folder: this.#laneFolder(readLaneId(id)), ...tried };
  }

  #laneFolder(lane: string): string {
    return join(this.#options.folder, lane);
  }

  #messagePath(id: string): string {
    return join(this.#laneFolder(readLaneId(id)), `${id}.json`);
  }

  #journalPath(id: string): string {
    return join(this.#laneFolder(readLaneId(id)), `${id}.journal.jsonl`);
  }

  #endedFolder(ended: EndedFolder, { acceptedAt }: OutboundMessage): string {
    const { folder } = this.#options;
    return ended === 'dead' ? join(folder, 'dead') : join(folder, 'settled', acceptedAt.slice(0, 10));
  }
}

/** The lane of a message stands in its id. */
export function readLaneId(id: string): string {
  return id.slice(2, 14);
}

export function isMessageId(text: string): boolean {
  return namePattern.test(text);
}

function idsAmong(names: readonly string[], ending: string): string[] {
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, -ending.length))
    .filter(isMessageId);
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: unknown) => {
    if (!isSystemError(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error;
  });
}

async function isThere(path: string): Promise<boolean> {
  return (await lstatIfThere(path)) !== undefined;
}

/** False when there is no such file: it is not made. On disk when it returns. */
async function appendToExisting(path: string, lines: readonly string[]): Promise<boolean> {
  try {
    const handle = await open(path, constants.O_APPEND | constants.O_WRONLY);
    try {
      // As `appendLines`: one write, that a torn line before it cannot swallow.
      await handle.appendFile(`\n${lines.join('\n')}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return false;
    throw error;
  }
}
