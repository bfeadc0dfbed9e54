import { rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DeliveryStep, OutboundMessage } from '@concierge/contract';
import {
  appendLines,
  assertNotLater,
  createFile,
  ignoreMissing,
  isSystemError,
  namesIn,
  parseAllLines,
  parseStored,
  readIfThere,
  removeOldTemporaries,
  temporaryPrefix,
  type FolderSync,
} from '@concierge/files';
import type { Log } from '@concierge/runtime';
import { z } from 'zod';
import { Delivery } from './delivery.ts';
import { EndedDeliveries, MessageLine, readFirstMessage, type EndedFolder } from './ended-deliveries.ts';
import { OutboxClaims, type ClaimedTry, type ClaimKey } from './outbox-claims.ts';
import { appendToExisting, attemptsMax, idsAmong, isMessageId, isThere, OutboxFolder } from './outbox-folder.ts';

/** A message that was taken up again stands before its steps. */
const JournalLine = z.discriminatedUnion('kind', [...DeliveryStep.options, MessageLine]);

const lanePattern = /^[0-9a-f]{12}$/u;

export interface OutboxFilesOptions {
  readonly tenantId: string;
  /** tenants/<id>/outbox */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly log: Log;
}

/**
 * Where messages lie. On its way: `<lane>/<id>.json`, its journal beside it, and a claim `<id>.<part>.<try>` for each
 * try, which can be made once. Ended: see `EndedDeliveries`.
 */
export class OutboxFiles {
  readonly ended: EndedDeliveries;
  readonly #options: OutboxFilesOptions;
  readonly #outbox: OutboxFolder;
  readonly #claims: OutboxClaims;

  constructor(options: OutboxFilesOptions) {
    this.#options = options;
    this.#outbox = new OutboxFolder(options);
    this.ended = new EndedDeliveries(this.#outbox);
    this.#claims = new OutboxClaims(options.folders);
  }

  /** On disk when it returns. False when it was there. */
  async create(message: OutboundMessage): Promise<boolean> {
    const folder = this.#laneFolder(readLaneId(message.id));
    const content = `${JSON.stringify(message, undefined, 2)}\n`;
    return this.#outbox.inFolder(folder, async () => createFile({ ...this.#outbox.toWrite(folder, `${message.id}.json`), content }));
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

  /** @throws LaterVersionError */
  async waiting(id: string): Promise<OutboundMessage | undefined> {
    if (!isMessageId(id)) return undefined;
    const path = this.#messagePath(id);
    const text = await readIfThere(path);
    if (text === undefined) return undefined;
    const parsed = parseStored(OutboundMessage, text);
    assertNotLater(parsed, path);
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
    const steps = await this.#steps(id);
    return new Delivery(message, steps, OutboxClaims.among(names, id));
  }

  /** Wherever it is; undefined when there is none (any more). */
  async find(id: string): Promise<Delivery | undefined> {
    const message = await this.waiting(id);
    if (message !== undefined) return this.onItsWay(message);
    const ended = await this.ended.find(id);
    if (ended !== undefined) return ended;
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
      const path = await this.ended.findPath(id);
      if (path !== undefined && (await appendToExisting(path, lines))) return true;
      if (path === undefined && !(await isThere(this.#messagePath(id)))) return false;
    }
    throw new Error(`message ${id} moves faster than it can be written to`);
  }

  /** Moves it out of its lane. After a crash in the middle another process repeats this. */
  async end(delivery: Delivery, ended: EndedFolder): Promise<void> {
    const { id } = delivery.message;
    const path = await this.ended.write(delivery, ended);
    await ignoreMissing(unlink(this.#messagePath(id)));
    // A result that was reported while this was written.
    const late = (await this.#steps(id)).slice(delivery.steps.length);
    if (late.length > 0)
      await this.ended.addMissing(
        path,
        late.map((step) => JSON.stringify(step)),
      );
    await this.#clearLane(id);
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
    const dead = this.ended.deadPath(id);
    if (!(await appendToExisting(dead, [JSON.stringify(step)]))) return false;
    const claims = (delivery.parts ?? []).flatMap((part, index) =>
      Array.from({ length: part.tries }, (_, tried) => this.#toClaimKey(id, { part: index, try: tried + 1 })),
    );
    return this.#outbox.inFolder(folder, async () => {
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

  /** Removes it from wherever it is; nothing leaves under a claim any more. */
  async erase(id: string): Promise<void> {
    await ignoreMissing(unlink(this.#messagePath(id)));
    await this.#clearLane(id);
    for (let path = await this.ended.findPath(id); path !== undefined; path = await this.ended.findPath(id)) {
      await ignoreMissing(unlink(path));
      await ignoreMissing(this.#options.folders.sync(dirname(path)));
    }
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
    await this.ended.sweep();
  }

  /** A process died while taking it up: its journal, which begins with the message, is back, and it is nowhere else. */
  async #repaired(id: string): Promise<OutboundMessage | undefined> {
    if (!isMessageId(id) || (await isThere(this.#messagePath(id)))) return undefined;
    const message = readFirstMessage((await readIfThere(this.#journalPath(id))) ?? '');
    if (message === undefined || (await this.ended.findPath(id)) !== undefined) return undefined;
    await this.#rewrite(message);
    return message;
  }

  /** Of what is on its way. @throws LaterVersionError */
  async #steps(id: string): Promise<DeliveryStep[]> {
    const path = this.#journalPath(id);
    const lines = parseAllLines(JournalLine, { text: (await readIfThere(path)) ?? '', path });
    return lines.filter((line) => line.kind !== 'message');
  }

  async #rewrite(message: OutboundMessage): Promise<void> {
    const folder = this.#laneFolder(readLaneId(message.id));
    await createFile({ ...this.#outbox.toWrite(folder, `${message.id}.json`), content: `${JSON.stringify(message, undefined, 2)}\n` });
  }

  async #clearLane(id: string): Promise<void> {
    const folder = this.#laneFolder(readLaneId(id));
    for (const name of await namesIn(folder)) if (name.startsWith(`${id}.`)) await ignoreMissing(unlink(join(folder, name)));
    await removeIfEmpty(folder);
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
}

/** The lane of a message stands in its id. */
export function readLaneId(id: string): string {
  return id.slice(2, 14);
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: unknown) => {
    if (!isSystemError(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error;
  });
}
