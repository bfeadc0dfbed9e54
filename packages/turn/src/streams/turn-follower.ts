import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import { findSlot, type Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { compareIds, decodeLive, isTerminal, newestEntry, readSlice, renderEntries, type StreamEntry } from './stream-entry.ts';

/** Follows turns from before they are enqueued (TurnStreams). */
export interface AcceptanceReader {
  /** @returns the name of the channel that it listens on; '' when it does not */
  expect(turn: AcceptedTurn, sessionEvent: string): string;
  forget(turnId: string): void;
}

/** Where a reader's entries go. */
export interface FollowSink {
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Rendered SSE, in order, each event once. */
  write(sse: string): void;
  /**
   * Resolves when the reader has consumed its buffer; undefined while the buffer has room. Without this function there
   * is always room.
   */
  room?(): Promise<void> | undefined;
  /** The terminal event has been written. */
  end(): void;
}

/** What all readers of a process have in common. */
export interface FollowerOptions {
  readonly redis: Redis;
  readonly log: Log;
  /** Listens to the turn's live messages. @returns whether that is complete, and needs no other call */
  readonly join: (followed: FollowedTurn) => Promise<boolean>;
  /**
   * For a stream that is gone or has lost its end: the events of the ended turn that a reader of `after` lacks, from
   * its session file; null while the turn has not ended.
   */
  readonly replay: (followed: FollowedTurn, after: string | null) => Promise<StreamEntry[] | null>;
}

export interface FollowedTurn {
  readonly scope: TenantScope;
  readonly turnId: string;
}

const RETRY_MS = 500;
/** The maximum of entries in memory for one reader: a tool result has 16 KiB. */
const SLICE = 64;

/**
 * One reader of one turn, at its position in the stream. filling (reading the stream; live messages wait) → live
 * (messages are passed on as they come) → filling again on a gap → ended. It joins before it first fills; a reader that
 * follows the turn since its acceptance begins live, and joins when it misses something.
 */
export class TurnFollower {
  readonly #options: FollowerOptions;
  readonly #turn: FollowedTurn;
  readonly #slot: Redis;
  readonly #sink: FollowSink;
  #last: string | null;
  /** The stream has more unread entries after this id. */
  #more: string | null = null;
  #state: 'filling' | 'live' | 'ended' = 'filling';
  #reading = false;
  #isJoined = false;
  #readAgain = false;
  /** The session file is read even when the stream continues: its end may be lost. */
  #asksDisk = false;
  #isSilent = false;
  #retry: NodeJS.Timeout | undefined;
  onEnd: () => void = () => undefined;

  constructor(options: FollowerOptions, turn: FollowedTurn, sink: FollowSink) {
    this.#options = options;
    this.#turn = turn;
    this.#slot = findSlot(options.redis, turn.scope.tenantId);
    this.#sink = sink;
    this.#last = sink.after;
  }

  get tenantId(): string {
    return this.#turn.scope.tenantId;
  }

  /** The turn was just accepted, and what was published since is here. */
  begin(first: StreamEntry, published: readonly string[]): void {
    this.#state = 'live';
    this.#pass(renderEntries([first]), first.id, false);
    for (const payload of published) this.receive(payload);
  }

  /**
   * A live message: passed on when it follows the last written entry and the reader has room, else the stream is read.
   */
  receive(payload: string): void {
    if (this.#state === 'ended') return;
    this.#isSilent = false;
    const message = decodeLive(payload);
    if (this.#state === 'live' && this.#last === message.before && this.#sink.room?.() === undefined) {
      this.#pass(message.sse, message.last, message.ends);
    } else if (this.#last === null || compareIds(message.last, this.#last) > 0) {
      void this.fill();
    }
  }

  /** Called every few seconds: a reader without a message since the last call checks whether the turn has ended. */
  checkSilence(): void {
    if (this.#isSilent && this.#state === 'live') void this.fill({ asksDisk: true });
    this.#isSilent = true;
  }

  /** Reads the stream after the last written entry. A call during a read causes one more read. */
  async fill({ asksDisk = false } = {}): Promise<void> {
    if (this.#state === 'ended') return;
    this.#state = 'filling';
    this.#asksDisk ||= asksDisk;
    if (this.#reading) {
      this.#readAgain = true;
      return;
    }
    this.#reading = true;
    try {
      do {
        this.#readAgain = false;
        await this.#read();
      } while (this.#again());
      this.#goLive();
    } catch (error) {
      this.#options.log.debug({ err: error, turnId: this.#turn.turnId }, 'cannot read the stream yet');
      this.#tryLater();
    } finally {
      this.#reading = false;
    }
  }

  close(): void {
    this.#state = 'ended';
    clearTimeout(this.#retry);
  }

  #again(): boolean {
    return (this.#readAgain || this.#more !== null) && this.#state !== 'ended';
  }

  #goLive(): void {
    if (this.#state === 'filling') this.#state = 'live';
  }

  #tryLater(): void {
    clearTimeout(this.#retry);
    if (this.#state !== 'ended') this.#retry = setTimeout(() => void this.fill(), RETRY_MS);
  }

  async #read(): Promise<void> {
    if (!this.#isJoined) this.#isJoined = await this.#options.join(this.#turn);
    const asksDisk = this.#asksDisk;
    this.#asksDisk = false;
    const entries = await this.#entries();
    // A stream with only its first entry nearly always belongs to a turn that was just accepted; if not, the reader
    // finds out by the check for silence.
    const isNew = this.#last === null && entries.length === 1 && !this.#isSilent;
    if (this.#isWhole(entries) || ((!asksDisk || isNew) && entries.length > 0)) {
      await this.#passEntries(entries);
      return;
    }
    const replayed = await this.#options.replay(this.#turn, this.#last);
    if (replayed === null) await this.#passLive(entries);
    else await this.#passEnded(replayed);
  }

  async #passLive(entries: readonly StreamEntry[]): Promise<void> {
    if (entries.length > 0) {
      await this.#passEntries(entries);
      return;
    }
    const newest = await this.#newest();
    if (this.#isSeenEnd(newest)) this.#pass('', this.#last, true);
    // Accepted, but not in its lane yet (or enqueued again in a moment): no live message announces writes to the
    // stream.
    else if (newest === null) this.#tryLater();
  }

  async #passEnded(replayed: readonly StreamEntry[]): Promise<void> {
    // The turn may have ended while the disk was read: then the stream has it all.
    const entries = await this.#entries();
    if (this.#isWhole(entries)) {
      await this.#passEntries(entries);
    } else if (this.#isSeenEnd(await this.#newest())) {
      this.#pass('', this.#last, true);
    } else {
      await this.#passEntries(replayed);
      this.#pass('', this.#last, true);
    }
  }

  async #newest(): Promise<StreamEntry | null> {
    return await newestEntry(this.#slot, this.#turn.turnId);
  }

  /**
   * A reader whose last event is not in the stream has seen entries that the stream has lost, and perhaps not the end.
   */
  #isSeenEnd(newest: StreamEntry | null): boolean {
    return newest !== null && isTerminal(newest) && newest.id === this.#last;
  }

  /** Whether these entries lead to more entries or to the end. */
  #isWhole(entries: readonly StreamEntry[]): boolean {
    return this.#more !== null || hasEnd(entries);
  }

  async #entries(): Promise<StreamEntry[]> {
    const entries = await readSlice(this.#slot, this.#turn.turnId, { after: this.#more ?? this.#last, atMost: SLICE });
    this.#more = entries.length < SLICE ? null : (entries.at(-1)?.id ?? null);
    return entries;
  }

  /** Writes entries as fast as the reader takes them, and no faster. */
  async #passEntries(entries: readonly StreamEntry[]): Promise<void> {
    for (let from = 0; from < entries.length; from += SLICE) {
      await this.#sink.room?.();
      const slice = entries.slice(from, from + SLICE);
      this.#pass(renderEntries(slice), slice.findLast((entry) => entry.type !== 'step')?.id ?? this.#last, hasEnd(slice));
    }
  }

  #pass(sse: string, last: string | null, ends: boolean): void {
    if (this.#state === 'ended') return;
    this.#last = last;
    if (sse !== '') this.#sink.write(sse);
    if (!ends) return;
    this.close();
    this.#sink.end();
    this.onEnd();
  }
}

function hasEnd(entries: readonly StreamEntry[]): boolean {
  return entries.some((entry) => isTerminal(entry));
}
