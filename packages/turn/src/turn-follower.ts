import type { Redis } from 'ioredis';
import type { Log } from '@concierge/runtime';
import { compareIds, decodeLive, isTerminal, newestEntry, readSlice, renderEntries, type StreamEntry } from './stream-entry.ts';

/** Where a reader's entries go. */
export interface FollowSink {
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Rendered SSE, in order, each event once. */
  write(sse: string): void;
  /** Resolves when the reader has taken what it was given; undefined while it has room for more. Without it there is always room. */
  room?(): Promise<void> | undefined;
  /** The terminal event has been written. */
  end(): void;
}

export interface FollowerOptions {
  readonly redis: Redis;
  readonly turnId: string;
  readonly sink: FollowSink;
  readonly log: Log;
  /** For a stream that is gone: what the reader lacks of the ended turn, from its session file; null while it is still on its way. */
  readonly retell: (after: string | null) => Promise<StreamEntry[] | null>;
}

const RETRY_MS = 500;
/** Entries that are in memory at once for one reader: a tool result has 16 KiB. */
const SLICE = 64;

/**
 * One reader's place in one turn.
 * filling (reading the stream; live messages wait) → live (messages are passed on as they come) → filling again on a gap → ended.
 */
export class TurnFollower {
  readonly #options: FollowerOptions;
  #last: string | null;
  /** The stream has more entries than were read, from here on. */
  #more: string | null = null;
  #state: 'filling' | 'live' | 'ended' = 'filling';
  #reading = false;
  #readAgain = false;
  #retry: NodeJS.Timeout | undefined;
  onEnd: () => void = () => undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#last = options.sink.after;
  }

  /** A live message: passed on when it follows what was written last and the reader has room, else the stream is read. */
  receive(payload: string): void {
    if (this.#state === 'ended') return;
    const message = decodeLive(payload);
    if (this.#state === 'live' && this.#last === message.before && this.#options.sink.room?.() === undefined) {
      this.#pass(message.sse, message.last, message.ends);
    } else if (this.#last === null || compareIds(message.last, this.#last) > 0) {
      void this.fill();
    }
  }

  /** Reads what the stream has beyond the last entry written. Called again while it reads, it reads once more. */
  async fill(): Promise<void> {
    if (this.#state === 'ended') return;
    this.#state = 'filling';
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
      this.#options.log.debug({ err: error, turnId: this.#options.turnId }, 'cannot read the stream yet');
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
    let entries = await this.#entries();
    const told = entries.length === 0 ? await this.#options.retell(this.#last) : null;
    if (told !== null) entries = told;
    if (this.#state === 'ended') return;
    if (told?.length === 0) {
      this.#pass('', this.#last, true);
      return;
    }
    if (entries.length === 0) {
      await this.#readNothing();
      return;
    }
    await this.#passEntries(entries);
  }

  async #entries(): Promise<StreamEntry[]> {
    const { redis, turnId } = this.#options;
    const entries = await readSlice(redis, turnId, { after: this.#more ?? this.#last, atMost: SLICE });
    this.#more = entries.length < SLICE ? null : (entries.at(-1)?.id ?? null);
    return entries;
  }

  /** As fast as the reader takes them, and no faster. */
  async #passEntries(entries: readonly StreamEntry[]): Promise<void> {
    for (let from = 0; from < entries.length; from += SLICE) {
      await this.#options.sink.room?.();
      if (this.#state === 'ended') return;
      const slice = entries.slice(from, from + SLICE);
      this.#pass(
        renderEntries(slice),
        slice.findLast((entry) => entry.type !== 'step')?.id ?? this.#last,
        slice.some((entry) => isTerminal(entry)),
      );
    }
  }

  async #readNothing(): Promise<void> {
    const newest = await newestEntry(this.#options.redis, this.#options.turnId);
    // The reader has seen the end before: there is nothing to wait for.
    if (newest !== null && isTerminal(newest)) this.#pass('', this.#last, true);
    // Accepted, but not in its lane yet (or laid again in a moment): nobody will announce it to this reader.
    else if (newest === null) this.#tryLater();
  }

  #pass(sse: string, last: string | null, ends: boolean): void {
    this.#last = last;
    if (sse !== '') this.#options.sink.write(sse);
    if (!ends) return;
    this.close();
    this.#options.sink.end();
    this.onEnd();
  }
}
