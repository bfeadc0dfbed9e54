import type { Response } from 'express';
import { limits } from '@concierge/contract';
import type { FollowSink } from '@concierge/turn';

export const eventStreamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** A comment: keeps the connection alive, and no client sees it as an event. */
const COMMENT = ':\n\n';

/** The events of a turn in the format of another protocol. */
export interface StreamEncoding {
  /** Rendered events of ours in, theirs out; empty when there is nothing to send. */
  encode(sse: string): string;
  /** What is sent when the stream ends before the turn does; empty after its end. */
  cutOff(): string;
}

interface EventStreamOptions {
  readonly response: Response;
  readonly keyId: string;
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Default: our own encoding. */
  readonly encoding?: StreamEncoding | undefined;
  /** Called once, whichever way the stream ends. */
  onClose(stream: EventStream): void;
  onDrop(): void;
}

/**
 * One client that reads one turn. It gets rendered text as it comes, but no more while it has
 * limits.sseMaxBufferedBytes unread. A client that takes nothing at all is dropped by the server's time-out, and
 * resumes.
 */
export class EventStream implements FollowSink, Beating {
  readonly after: string | null;
  readonly keyId: string;
  readonly #response: Response;
  readonly #options: Pick<EventStreamOptions, 'onClose' | 'onDrop' | 'encoding'>;
  #leave: (() => void) | undefined;
  #open = true;
  #room: Promise<void> | undefined;
  quietSinceMs = performance.now();

  constructor(options: EventStreamOptions) {
    this.#response = options.response;
    this.after = options.after;
    this.keyId = options.keyId;
    this.#options = options;
    this.#response.once('close', () => {
      this.#closed();
    });
    // Before the listener that cuts it off.
    this.#response.prependListener('timeout', () => {
      if (this.#open && this.#response.writableLength > 0) this.#options.onDrop();
    });
  }

  /** Ends the subscription behind the stream; called at once when the client has gone already. */
  endWith(leave: () => void): void {
    if (this.#open) this.#leave = leave;
    else leave();
  }

  write(sse: string): void {
    if (!this.#open) return;
    const text = this.#options.encoding === undefined ? sse : this.#options.encoding.encode(sse);
    if (text !== '') this.#send(text);
  }

  room(): Promise<void> | undefined {
    if (!this.#open || this.#response.writableLength <= limits.sseMaxBufferedBytes) return undefined;
    this.#room ??= new Promise<void>((resolve) => {
      const taken = (): void => {
        this.#room = undefined;
        this.#response.off('drain', taken).off('close', taken);
        resolve();
      };
      this.#response.once('drain', taken).once('close', taken);
    });
    return this.#room;
  }

  beat(): void {
    if (this.#open) this.#send(COMMENT);
  }

  /** Ends the answer in good order: what was written still goes out. */
  end(): void {
    if (!this.#open) return;
    const text = this.#options.encoding?.cutOff() ?? '';
    if (text !== '') this.#response.write(text);
    this.#response.end();
    this.#closed();
  }

  #send(text: string): void {
    this.quietSinceMs = performance.now();
    this.#response.write(text);
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#leave?.();
    this.#leave = undefined;
    this.#options.onClose(this);
  }
}

/** A stream that gets heartbeats. */
interface Beating {
  /** When something was last written, in milliseconds of `performance.now()`. */
  readonly quietSinceMs: number;
  beat(): void;
}

const TICK_MS = 1000;
const SLOTS = Math.round(limits.sseHeartbeatMs / TICK_MS);

/**
 * One timer for all streams: each stands in the slot in which its silence may have lasted long enough; one that has
 * sent something since moves on.
 */
export class HeartbeatWheel implements Disposable {
  readonly #slots: readonly Set<Beating>[] = Array.from({ length: SLOTS }, () => new Set<Beating>());
  readonly #slotOf = new Map<Beating, number>();
  readonly #timer: NodeJS.Timeout;
  #hand = 0;

  constructor() {
    this.#timer = setInterval(() => {
      this.tick(performance.now());
    }, TICK_MS);
    this.#timer.unref();
  }

  add(member: Beating): void {
    this.#put(member, SLOTS - 1);
  }

  remove(member: Beating): void {
    const slot = this.#slotOf.get(member);
    if (slot === undefined) return;
    this.#slots[slot]?.delete(member);
    this.#slotOf.delete(member);
  }

  /** Turns the wheel by one slot. Public for tests; the timer calls it every second. */
  tick(nowMs: number): void {
    this.#hand = (this.#hand + 1) % SLOTS;
    const due = [...(this.#slots[this.#hand] ?? [])];
    for (const member of due) {
      const silentMs = nowMs - member.quietSinceMs;
      // Half a tick of tolerance: a timer that comes a little early must not cost a whole round.
      const late = silentMs >= limits.sseHeartbeatMs - TICK_MS / 2;
      if (late) member.beat();
      this.remove(member);
      this.#put(member, late ? SLOTS : Math.max(1, Math.ceil((limits.sseHeartbeatMs - silentMs) / TICK_MS)));
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #put(member: Beating, ticksAhead: number): void {
    const slot = (this.#hand + ticksAhead) % SLOTS;
    this.#slots[slot]?.add(member);
    this.#slotOf.set(member, slot);
  }
}
