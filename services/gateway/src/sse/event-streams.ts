import type { Request, Response } from 'express';
import { AppError, limits } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnStreams, FollowSink } from '@concierge/turn';
import type { Drain } from '../http/drain.ts';
import type { GatewayMetrics } from '../metrics.ts';

export interface EventStreamsOptions {
  readonly turns: Pick<TurnStreams, 'follow' | 'isReadToEnd'>;
  readonly metrics: GatewayMetrics;
  readonly maxPerKey: number;
  readonly drain: Drain;
}

/** How long the headers wait for the first event. */
const HEADERS_WAIT_MS = 15;

/** What one stream shows. */
export interface Watch {
  readonly scope: TenantScope;
  readonly turnId: string;
  readonly keyId: string;
  readonly after: string | null;
  readonly encoding?: StreamEncoding;
}

/** Every event stream of this process: limits them for each key, sends heartbeats, and ends all of them at shutdown. */
export class EventStreams implements Disposable {
  readonly #options: EventStreamsOptions;
  readonly #wheel = new HeartbeatWheel();
  readonly #open = new Set<EventStream>();
  readonly #perKey = new Map<string, number>();

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    // Their clients resume on another gateway.
    options.drain.ended.addEventListener('abort', () => {
      this.#endAll();
    });
  }

  /** Asked before a turn is accepted: what cannot be answered is not taken. @throws AppError `overloaded` */
  refuseWhenFull(keyId: string, whose: 'key' | 'visitor' = 'key'): void {
    const atMost = whose === 'key' ? this.#options.maxPerKey : limits.widgetStreamsPerVisitor;
    if ((this.#perKey.get(keyId) ?? 0) < atMost) return;
    throw new AppError('overloaded', `This ${whose} has too many open streams.`, { retryAfterSeconds: 5 });
  }

  /** Whether there is nothing left to send to a client. An EventSource that is answered 204 does not come back. */
  async isOver({ scope, turnId, after }: Pick<Watch, 'scope' | 'turnId' | 'after'>): Promise<boolean> {
    return after !== null && (await this.#options.turns.isReadToEnd(scope, turnId, after));
  }

  /** Answers with the events of a turn. A client that goes away ends its stream, never the turn. */
  serve(response: Response, { scope, turnId, keyId, after, encoding }: Watch): void {
    response.writeHead(200, eventStreamHeaders);
    forgetRequest(response.req);
    if (response.req.method === 'HEAD') {
      response.end();
      return;
    }
    flushHeadersSoon(response);
    const stream = new EventStream({ response, keyId, after, encoding, onClose: this.#onClose, onDrop: this.#onDrop });
    this.#open.add(stream);
    this.#options.drain.hold();
    this.#perKey.set(keyId, (this.#perKey.get(keyId) ?? 0) + 1);
    this.#options.metrics.openStreams.inc();
    this.#wheel.add(stream);
    stream.endWith(this.#options.turns.follow(scope, turnId, stream));
  }

  [Symbol.dispose](): void {
    this.#wheel[Symbol.dispose]();
    this.#endAll();
  }

  #endAll(): void {
    for (const stream of this.#open) stream.end();
  }

  readonly #onClose = (stream: EventStream): void => {
    this.#wheel.remove(stream);
    this.#open.delete(stream);
    this.#options.metrics.openStreams.dec();
    const left = (this.#perKey.get(stream.keyId) ?? 1) - 1;
    if (left === 0) this.#perKey.delete(stream.keyId);
    else this.#perKey.set(stream.keyId, left);
    this.#options.drain.release();
  };

  readonly #onDrop = (): void => {
    this.#options.metrics.droppedClients.inc();
  };
}

/** The first event nearly always follows within a millisecond or two, and carries the headers along. */
function flushHeadersSoon(response: Response): void {
  setTimeout(() => {
    if (!response.destroyed && !response.writableEnded) response.flushHeaders();
  }, HEADERS_WAIT_MS);
}

/**
 * A stream keeps its request for as long as it lasts, often long and silent: parts that are no longer needed are
 * released.
 */
function forgetRequest(request: Request): void {
  // Assigned, not deleted: a deleted property makes the whole object a slow and large one.
  Object.assign(request, { headers: {}, rawHeaders: [], body: undefined, next: undefined });
}

const eventStreamHeaders = {
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
class EventStream implements FollowSink, Beating {
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
