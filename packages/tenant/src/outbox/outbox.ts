import { join } from 'node:path';
import { hash } from 'node:crypto';
import { appendFile, stat, unlink } from 'node:fs/promises';
import {
  DAY_MS,
  AppError,
  limits,
  OutboundId,
  OutboundMessage,
  type Actor,
  type MessagingChannel,
  type DeliveryStep,
} from '@concierge/contract';
import { ignoreMissing, makeStoreFolder, namesIn, readIfThere, unlessLater, type FolderSync } from '@concierge/files';
import { background, failpoint, hashParts, type Log } from '@concierge/runtime';
import type { Delivery } from './delivery.ts';
import { readLaneId, OutboxFiles } from './outbox-files.ts';

/** Wakes a deliverer for this lane; only speed depends on it. */
export type WakeOutbox = (lane: OutboxLane) => Promise<void>;

/** A conversation's place in an outbox. */
export interface OutboxLane {
  readonly tenantId: string;
  readonly lane: string;
}

export interface OutboxOptions {
  readonly tenantId: string;
  /** tenants/<id>/outbox */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly wake?: WakeOutbox | undefined;
  /** Called when it is known how the sending of this message has ended, and when it is sent again after that. */
  readonly onChanged?: ((id: string) => void) | undefined;
  readonly log: Log;
  readonly now?: () => number;
}

export type NewOutbound = Omit<OutboundMessage, 'version' | 'id' | 'acceptedAt' | 'expiresAt'>;

export interface Try {
  readonly part: number;
  readonly try: number;
}

/** A part of a message, by the provider's id of it. */
export interface SentPart {
  readonly messageId: string;
  readonly part: number;
}

/** The limit on waiting messages covers these kinds: they are what a runaway agent makes. */
const limitedKinds: ReadonlySet<string> = new Set<OutboundMessage['kind']>(['message', 'reply']);
/** A provider reports how far a contact has read within this time. */
const readMarkDays = 8;
const filesAtOnce = 64;

/**
 * What is sent on channels: a file each, written before a caller gets its confirmation. The name follows from
 * recipient, turn and call, so that a call which is made again after a crash finds its message here. What becomes of it
 * is written beside it, and kept for `outboxKeptDays`.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #files: OutboxFiles;
  /** From a provider's id of a part. */
  readonly #sent: OutboxPointers;
  readonly #turns: OutboxPointers;
  #lastAcceptedMs = 0;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#files = new OutboxFiles(options);
    this.#sent = new OutboxPointers(join(options.folder, 'refs'), options.folder);
    this.#turns = new OutboxPointers(join(options.folder, 'turns'), options.folder);
  }

  /**
   * On disk when it returns. `isNew` is false when this call was made before: the first one counts.
   * @throws AppError too_many_waiting, for messages that agents send unasked
   */
  async accept(outbound: NewOutbound): Promise<{ readonly message: OutboundMessage; readonly isNew: boolean }> {
    const id = this.deriveOutboundId(outbound);
    const known = await this.delivery(id);
    if (known !== undefined) {
      // The process that accepted it may have died before the wake-up.
      if (known.state === 'waiting') this.#wake(id);
      return { message: known.message, isNew: false };
    }
    if (limitedKinds.has(outbound.kind) && (await this.#isFull()))
      throw new AppError('too_many_waiting', `${String(limits.outboxMaxWaiting)} messages wait to be sent already; no more are taken.`);
    // Two of one process never have the same time: their order is that of acceptance.
    const nextMs = await this.#nextTimeMs(readLaneId(id));
    const acceptedMs = Math.max(this.#nowMs(), this.#lastAcceptedMs + 1, nextMs);
    this.#lastAcceptedMs = acceptedMs;
    const message = OutboundMessage.parse({
      version: 1,
      id,
      ...outbound,
      acceptedAt: new Date(acceptedMs).toISOString(),
      expiresAt: new Date(acceptedMs + limits.outboxTtlSeconds * 1000).toISOString(),
    });
    await this.#turns.add(outbound.turnId, id);
    const isNew = await this.#files.create(message);
    await failpoint('outbox.after-file');
    this.#wake(id);
    return { message: (await this.find(id)) ?? message, isNew };
  }

  deriveOutboundId({ channel, to, thread, turnId, callId }: Pick<NewOutbound, 'channel' | 'to' | 'thread' | 'turnId' | 'callId'>): string {
    const said = hashParts(['outbound', this.#options.tenantId, turnId, callId], { separator: 'json', digits: 20 });
    return OutboundId.parse(`m_${deriveLaneId({ channel, to, thread })}${said}`);
  }

  /** On its way or ended; undefined when there is none, or it was long ago. */
  async find(id: string): Promise<OutboundMessage | undefined> {
    return (await this.#files.find(id))?.message;
  }

  /** A message and what became of it. */
  async delivery(id: string): Promise<Delivery | undefined> {
    return this.#files.find(id);
  }

  /** What is still to be sent, in order of acceptance; without conversations that wait for a later version. */
  async waiting(): Promise<OutboundMessage[]> {
    const lanes = await Promise.all((await this.lanes()).map(async (lane) => (await unlessLater(this.#files.waitingIn(lane))) ?? []));
    return lanes.flat().toSorted((a, b) => a.acceptedAt.localeCompare(b.acceptedAt) || a.id.localeCompare(b.id));
  }

  /** Conversations in which something is on its way. One directory read. */
  async lanes(): Promise<string[]> {
    return this.#files.lanes();
  }

  async isEmpty(lane: string): Promise<boolean> {
    return (await this.idsIn(lane)).length === 0;
  }

  /** What waits in this conversation, in no order. One directory read. */
  async idsIn(lane: string): Promise<string[]> {
    return this.#files.listLaneIds(lane);
  }

  /** What is to be sent first in this conversation. @throws LaterVersionError */
  async head(lane: string): Promise<Delivery | undefined> {
    const [first] = await this.#files.waitingIn(lane);
    return first === undefined ? undefined : this.#files.onItsWay(first);
  }

  /** The messages of this turn. */
  async ofTurn(turnId: string): Promise<Delivery[]> {
    const found = await Promise.all((await this.#turns.find(turnId)).map(async (id) => this.delivery(id)));
    return found.filter((delivery) => delivery !== undefined);
  }

  /**
   * Claims a try: on disk when it returns. False when another process has it, or the message is no longer on its way:
   * then nothing may be sent. When no result follows, `takeOver` decides the outcome of the try.
   */
  async claim({ message }: Delivery, tried: Try): Promise<boolean> {
    return this.#files.claim(message.id, tried);
  }

  /**
   * The request of a claimed try leaves: call right before it does. False when another has taken over meanwhile, and
   * nothing may be sent. Should this process die before it, the try is known to have come to nothing, and the message
   * is sent again by itself.
   */
  async leave({ message }: Delivery, tried: Try): Promise<boolean> {
    return this.#files.leave(message.id, tried);
  }

  /** What may have left under a try that has no result and whose holder is gone. Nothing leaves under it after this. */
  async takeOver({ message }: Delivery, tried: Try): Promise<'nothing' | 'perhaps'> {
    return this.#files.takeOver(message.id, tried);
  }

  /**
   * Writes down what has happened, wherever the message is by now; the delivery as it is then. On disk when it returns.
   */
  async record(id: string, steps: readonly DeliveryStep[]): Promise<Delivery | undefined> {
    if (!(await this.#files.append(id, steps))) return undefined;
    const delivery = await this.delivery(id);
    if (delivery === undefined) return undefined;
    for (const step of steps) {
      if (step.kind === 'result' && step.providerMessageId !== undefined)
        await this.#sent.add(sentKey(delivery.message.channel, step.providerMessageId), `${id} ${String(step.part)}`);
    }
    if (delivery.state === 'failed') await this.#files.ended.moveToDead(delivery);
    if (delivery.state !== 'waiting') this.#options.onChanged?.(id);
    return delivery;
  }

  /**
   * Takes a message out of its lane, when nothing is to be done for it any more. Leaves one that was taken up again
   * since the caller looked.
   */
  async end({ message, state }: Delivery): Promise<void> {
    if (state === 'waiting') throw new TypeError('a message that waits cannot be ended');
    const current = await this.delivery(message.id);
    if (current === undefined || current.state === 'waiting') return;
    const hasAllOfIt = current.state === 'sent' || current.state === 'delivered' || current.state === 'read';
    await this.#files.end(current, hasAllOfIt ? 'settled' : 'dead');
  }

  /** Sends again what did not arrive, parts with an unknown outcome included. @throws AppError not_found, conflict */
  async redrive(id: string, by: Actor): Promise<Delivery> {
    const delivery = await this.delivery(id);
    if (delivery === undefined) throw new AppError('not_found', 'There is no such message.');
    if (delivery.state === 'waiting') throw new AppError('conflict', 'The message is on its way already.');
    if (hasArrived(delivery)) throw new AppError('conflict', 'The provider has all of the message: there is nothing to send again.');
    const nowMs = this.#nowMs();
    const expiresAt = new Date(nowMs + limits.outboxTtlSeconds * 1000).toISOString();
    // One that was sent and has failed after all may lie among the settled still.
    await this.#files.ended.moveToDead(delivery);
    const isTakenUp = await this.#files.takeUp(delivery, { kind: 'redrive', at: new Date(nowMs).toISOString(), by, expiresAt });
    const after = await this.delivery(id);
    // Another has taken it up, unless it has only just ended and is still being put away.
    if (after === undefined || (!isTakenUp && after.state !== 'waiting'))
      throw new AppError('conflict', 'The message is just being put away; ask again in a moment.');
    this.#wake(id);
    this.#options.onChanged?.(id);
    return after;
  }

  /** The part with this id of the provider's; undefined when none of ours has it. */
  async findSent(channel: MessagingChannel, providerMessageId: string): Promise<SentPart | undefined> {
    const [line] = (await this.#sent.find(sentKey(channel, providerMessageId))).toReversed();
    const [messageId, part] = line?.split(' ') ?? [];
    return messageId === undefined || part === undefined ? undefined : { messageId, part: Number(part) };
  }

  /** What was sent to a contact lately: for receipts that name a time and no message. */
  async sentTo(channel: MessagingChannel, to: string): Promise<Delivery[]> {
    const lane = deriveLaneId({ channel, to });
    const isTheirs = (id: string): boolean => readLaneId(id) === lane;
    const found = await Promise.all((await this.#files.waitingIn(lane)).map(async (message) => this.#files.onItsWay(message)));
    for (const id of (await this.#files.ended.deadIds()).filter(isTheirs)) found.push(...some(await this.#files.ended.readDead(id)));
    for (const day of (await this.#files.ended.days()).slice(0, readMarkDays))
      for (const id of (await this.#files.ended.settledIds(day)).filter(isTheirs))
        found.push(...some(await this.#files.ended.readSettled(day, id)));
    return found;
  }

  /** What waits may go now: a channel was connected, for example. */
  async wakeAll(): Promise<void> {
    if (this.#options.wake !== undefined) for (const lane of await this.lanes()) this.#wakeLane(lane);
  }

  /** Of the messages that staff may have to look at, in no order. One directory read. */
  async deadIds(): Promise<string[]> {
    return this.#files.ended.deadIds();
  }

  /** The messages that staff may have to look at, in no order. */
  async dead(): Promise<Delivery[]> {
    return readEach(await this.deadIds(), async (id) => this.#files.ended.readDead(id));
  }

  async onTheirWay(): Promise<Delivery[]> {
    const found = await Promise.all((await this.waiting()).map(async (message) => unlessLater(this.#files.onItsWay(message))));
    return found.filter((delivery) => delivery !== undefined);
  }

  /** Days with settled messages, the last one first, and what is settled of a day. */
  async settledDays(): Promise<string[]> {
    return this.#files.ended.days();
  }

  async listSettled(day: string): Promise<Delivery[]> {
    return readEach(await this.#files.ended.settledIds(day), async (id) => this.#files.ended.readSettled(day, id));
  }

  /** Clears away what writers that died in the middle left. */
  async sweep(): Promise<void> {
    await this.#files.sweep();
  }

  /** Clears away what is too old to be of use. Looks at all that there is: not too often. */
  async forget(): Promise<void> {
    const untilMs = this.#nowMs() - limits.outboxKeptDays * DAY_MS;
    const untilDay = new Date(untilMs).toISOString().slice(0, 10);
    for (const day of await this.#files.ended.days()) if (day < untilDay) await this.#files.ended.removeDay(day);
    for (const { message, updatedAt } of await this.dead())
      if (Date.parse(updatedAt) < untilMs) await this.#files.ended.removeDead(message.id);
    await this.#sent.removeBefore(untilMs - DAY_MS);
    await this.#turns.removeBefore(untilMs - DAY_MS);
  }

  /** Removes messages, wherever they are, with what became of them; how many. */
  async erase(isMeant: (message: OutboundMessage) => boolean): Promise<number> {
    const settled = await Promise.all((await this.settledDays()).map(async (day) => this.listSettled(day)));
    const meant = [...(await this.onTheirWay()), ...(await this.dead()), ...settled.flat()].filter(({ message }) => isMeant(message));
    for (const { message } of meant) await this.#files.erase(message.id);
    return meant.length;
  }

  async #isFull(): Promise<boolean> {
    const ids = await Promise.all((await this.lanes()).map(async (lane) => this.#files.listLaneIds(lane)));
    if (ids.flat().length < limits.outboxMaxWaiting) return false;
    const counted = (await this.waiting()).filter(({ kind }) => limitedKinds.has(kind));
    return counted.length >= limits.outboxMaxWaiting;
  }

  #wake(id: string): void {
    this.#wakeLane(readLaneId(id));
  }

  #wakeLane(lane: string): void {
    const { wake, tenantId, log } = this.#options;
    if (wake !== undefined) background(wake({ tenantId, lane }), log);
  }

  /**
   * Later than all that waits there, by any worker and any clock: an answer does not go before the reply that another
   * worker made first.
   */
  async #nextTimeMs(lane: string): Promise<number> {
    const last = (await this.#files.waitingIn(lane)).at(-1);
    return last === undefined ? 0 : Date.parse(last.acceptedAt) + 1;
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** The conversation a message stands in line in: everything to one place on one channel. */
export function deriveLaneId({ channel, to, thread }: Pick<NewOutbound, 'channel' | 'to' | 'thread'>): string {
  return hashParts([channel, to, thread ?? null], { separator: 'json', digits: 12 });
}

function hasArrived({ parts = [] }: Delivery): boolean {
  return parts.length > 0 && parts.every((part) => part.state === 'sent' && part.receipt !== 'failed');
}

function sentKey(channel: MessagingChannel, providerMessageId: string): string {
  return JSON.stringify([channel, providerMessageId]);
}

/** A day may have thousands: so many files are open at once and no more. */
async function readEach(ids: readonly string[], read: (id: string) => Promise<Delivery | undefined>): Promise<Delivery[]> {
  const found: Delivery[] = [];
  for (let at = 0; at < ids.length; at += filesAtOnce)
    found.push(...(await Promise.all(ids.slice(at, at + filesAtOnce).map(read))).flatMap(some));
  return found;
}

function some<Value>(value: Value | undefined): Value[] {
  return value === undefined ? [] : [value];
}

/**
 * Small files that lead from something else to messages: from the provider's own id, from a turn. A line each, found by
 * the hash of what leads there. Not flushed: one that a power failure takes away costs a receipt, or a line in a view,
 * and never a message.
 */
class OutboxPointers {
  readonly #folder: string;
  readonly #store: string;

  /** `folder`: in `store`, the outbox. */
  constructor(folder: string, store: string) {
    this.#folder = folder;
    this.#store = store;
  }

  async add(key: string, line: string): Promise<void> {
    const { folder, name } = this.#place(key);
    await makeStoreFolder(folder, { store: this.#store, mode: 0o700 });
    await appendFile(join(folder, name), `${line}\n`, { mode: 0o600 });
  }

  /** In the order in which they were added, each once. */
  async find(key: string): Promise<string[]> {
    const { folder, name } = this.#place(key);
    const lines = ((await readIfThere(join(folder, name))) ?? '').split('\n').slice(0, -1);
    return [...new Set(lines)];
  }

  /** Removes pointers that nothing was added to since then. */
  async removeBefore(ms: number): Promise<void> {
    for (const shelf of await namesIn(this.#folder)) {
      for (const name of await namesIn(join(this.#folder, shelf))) {
        const path = join(this.#folder, shelf, name);
        const facts = await stat(path).catch(() => undefined);
        if (facts !== undefined && facts.mtimeMs < ms) await ignoreMissing(unlink(path));
      }
    }
  }

  #place(key: string): { readonly folder: string; readonly name: string } {
    const digest = hash('sha256', key);
    return { folder: join(this.#folder, digest.slice(0, 2)), name: digest.slice(2, 34) };
  }
}
