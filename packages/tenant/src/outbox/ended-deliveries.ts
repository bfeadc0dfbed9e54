import { rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DeliveryStep, OutboundMessage } from '@concierge/contract';
import { ignoreMissing, namesIn, parseLines, readIfThere, removeFolderIn, replaceFile, sweepTemporaries } from '@concierge/files';
import { z } from 'zod';
import { Delivery } from './delivery.ts';
import { appendToExisting, idsAmong, isMessageId, isThere, type OutboxFolder } from './outbox-folder.ts';

const dayPattern = /^\d{4}-\d{2}-\d{2}$/u;

/** What a file of an ended delivery begins with. */
export const MessageLine = z.object({ kind: z.literal('message'), message: OutboundMessage });

export type EndedFolder = 'settled' | 'dead';

/** The message that a file of lines begins with. */
export function readFirstMessage(text: string): OutboundMessage | undefined {
  return parseLines(MessageLine, text.split('\n', 1)[0] ?? '')[0]?.message;
}

/**
 * Deliveries that have ended, a file each: the message and its journal, in `settled/<day of acceptance>` or in `dead`.
 */
export class EndedDeliveries {
  readonly #outbox: OutboxFolder;

  constructor(outbox: OutboxFolder) {
    this.#outbox = outbox;
  }

  /** Returns the path of its file. What a process that died here has written already stays. */
  async write(delivery: Delivery, ended: EndedFolder): Promise<string> {
    const { message } = delivery;
    const folder = this.#endedFolder(ended, message);
    const path = join(folder, `${message.id}.jsonl`);
    const lines = [JSON.stringify({ kind: 'message', message }), ...delivery.steps.map((step) => JSON.stringify(step))];
    if (await isThere(path)) await this.addMissing(path, lines);
    else {
      const file = { ...this.#outbox.toWrite(folder, `${message.id}.jsonl`), content: `${lines.join('\n')}\n` };
      await this.#outbox.inFolder(folder, async () => replaceFile(file));
    }
    await ignoreMissing(unlink(join(this.#endedFolder(ended === 'dead' ? 'settled' : 'dead', message), `${message.id}.jsonl`)));
    return path;
  }

  async addMissing(path: string, lines: readonly string[]): Promise<void> {
    const known = new Set(((await readIfThere(path)) ?? '').split('\n'));
    const missing = lines.filter((line) => !known.has(line));
    if (missing.length > 0) await appendToExisting(path, missing);
  }

  /** A settled one that has failed after all; nothing happens to one that is not settled. */
  async moveToDead({ message }: Delivery): Promise<void> {
    const from = join(this.#endedFolder('settled', message), `${message.id}.jsonl`);
    if (!(await isThere(from))) return;
    const folder = this.#endedFolder('dead', message);
    await this.#outbox.makeFolder(folder);
    await ignoreMissing(rename(from, join(folder, `${message.id}.jsonl`)));
    await this.#outbox.folders.sync(folder);
  }

  /** Days of which there are settled messages, the last one first. */
  async days(): Promise<string[]> {
    return (await namesIn(join(this.#outbox.path, 'settled')))
      .filter((name) => dayPattern.test(name))
      .toSorted()
      .toReversed();
  }

  async settledIds(day: string): Promise<string[]> {
    return idsAmong(await namesIn(join(this.#outbox.path, 'settled', day)), '.jsonl');
  }

  async deadIds(): Promise<string[]> {
    return idsAmong(await namesIn(join(this.#outbox.path, 'dead')), '.jsonl');
  }

  async readSettled(day: string, id: string): Promise<Delivery | undefined> {
    return this.#readEnded(join(this.#outbox.path, 'settled', day, `${id}.jsonl`));
  }

  async readDead(id: string): Promise<Delivery | undefined> {
    return this.#readEnded(this.deadPath(id));
  }

  async removeDay(day: string): Promise<void> {
    await removeFolderIn(join(this.#outbox.path, 'settled'), day);
  }

  async removeDead(id: string): Promise<void> {
    await ignoreMissing(unlink(this.deadPath(id)));
  }

  async find(id: string): Promise<Delivery | undefined> {
    const path = await this.findPath(id);
    return path === undefined ? undefined : this.#readEnded(path);
  }

  async findPath(id: string): Promise<string | undefined> {
    if (!isMessageId(id)) return undefined;
    const dead = this.deadPath(id);
    if (await isThere(dead)) return dead;
    for (const day of await this.days()) {
      const path = join(this.#outbox.path, 'settled', day, `${id}.jsonl`);
      if (await isThere(path)) return path;
    }
    return undefined;
  }

  deadPath(id: string): string {
    return join(this.#outbox.path, 'dead', `${id}.jsonl`);
  }

  /** Clears away what writers that died in the middle left. */
  async sweep(): Promise<void> {
    await sweepTemporaries(join(this.#outbox.path, 'dead'));
    for (const day of await this.days()) await sweepTemporaries(join(this.#outbox.path, 'settled', day));
  }

  async #readEnded(path: string): Promise<Delivery | undefined> {
    const text = await readIfThere(path);
    if (text === undefined) return undefined;
    const message = readFirstMessage(text);
    return message === undefined ? undefined : new Delivery(message, parseLines(DeliveryStep, text));
  }

  #endedFolder(ended: EndedFolder, { acceptedAt }: OutboundMessage): string {
    const { path: folder } = this.#outbox;
    return ended === 'dead' ? join(folder, 'dead') : join(folder, 'settled', acceptedAt.slice(0, 10));
  }
}
