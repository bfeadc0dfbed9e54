import type { Request, Response } from 'express';
import { limits } from '@concierge/contract';
import type { FollowSink } from '@concierge/turn';

const eventStreamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** How long the headers wait for the first event. */
const HEADERS_WAIT_MS = 15;

/** The events of a turn in the format of another protocol. */
export interface StreamEncoding {
  /** Rendered events of ours in, theirs out; empty when there is nothing to send. */
  encode(sse: string): string;
  /** What is sent when the stream ends before the turn does; empty after its end. */
  cutOff(): string;
}

/** The first event nearly always follows within a millisecond or two, and carries the headers along. */
function flushHeadersSoon(response: Response): void {
  setTimeout(() => {
    if (!response.destroyed && !response.writableEnded) response.flushHeaders();
  }, HEADERS_WAIT_MS);
}

/**
 * A stream keeps its request for as long as it lasts, often long and silent: parts that are no longer needed are
 * released, what Express has added among them.
 */
function forgetRequest(request: Request): void {
  // Assigned, not deleted: a deleted property makes the whole object a slow and large one.
  Object.assign(request, { headers: {}, rawHeaders: [], body: undefined, next: undefined, params: undefined, _parsedUrl: undefined });
}

/** Sends the head of the answer. False when that is all of it: the request was `HEAD`. */
export function beginEventStream(response: Response): boolean {
  response.writeHead(200, eventStreamHeaders);
  forgetRequest(response.req);
  if (response.req.method === 'HEAD') {
    response.end();
    return false;
  }
  flushHeadersSoon(response);
  return true;
}

export interface StreamStart {
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Default: our own encoding. */
  readonly encoding?: StreamEncoding;
  readonly keyId: string;
}

export interface StreamOwner {
  /** Called once, whichever way the stream ends. */
  forget(stream: EventStream): void;
}

/** A comment: keeps the connection alive, and no client sees it as an event. */
const COMMENT = ':\n\n';

/**
 * One client that reads one turn. It gets rendered text as it comes, but no more while it has
 * limits.sseMaxBufferedBytes unread. A client that takes nothing at all is dropped by the server's time-out, and
 * resumes.
 */
export class EventStream implements FollowSink, Beating {
  readonly after: string | null;
  readonly keyId: string;
  readonly #response: Response;
  readonly #encoding: StreamEncoding | undefined;
  readonly #owner: StreamOwner;
  #leave: (() => void) | undefined;
  #open = true;
  #isBegun = false;
  #room: Promise<void> | undefined;
  quietSinceMs = performance.now();

  constructor(response: Response, { after, encoding, keyId }: StreamStart, owner: StreamOwner) {
    this.#response = response;
    this.after = after;
    this.#encoding = encoding;
    this.keyId = keyId;
    this.#owner = owner;
    response.on('close', () => {
      this.#closed();
    });
  }

  /** Ends the subscription behind the stream; called at once when the client has gone already. */
  endWith(leave: () => void): void {
    if (this.#open) this.#leave = leave;
    else leave();
  }

  write(sse: string): void {
    if (!this.#open) return;
    const text = this.#encoding === undefined ? sse : this.#encoding.encode(sse);
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
    const text = this.#encoding?.cutOff() ?? '';
    if (text !== '') this.#response.write(text);
    this.#response.end();
    this.#closed();
  }

  #send(text: string): void {
    this.quietSinceMs = performance.now();
    // Sends the headers as a piece of their own, in the same packet. Node keeps them as long as the answer lasts, and
    // V8 makes one string of what is sent: joined to the text, they would stay the fifty pieces that they were put
    // together from, 1.7 KiB instead of 0.6.
    if (!this.#isBegun) this.#response.write('');
    this.#isBegun = true;
    this.#response.write(text);
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#leave?.();
    this.#leave = undefined;
    this.#owner.forget(this);
  }
}

/** A stream that gets heartbeats. */
interface Beating {
  /** When something was last written, in milliseconds of `performance.now()`. */
  readonly quietSinceMs: number;
  beat(): void;
}

const TICK_MS = 1000;
/** Half a tick of tolerance: a timer that comes a little early must not cost a whole one. */
const SILENT_MS = limits.sseHeartbeatMs - TICK_MS / 2;

/** One timer for all streams: looks every second which of them have been silent for too long. */
export class Heartbeats implements Disposable {
  readonly #streams: ReadonlySet<Beating>;
  readonly #timer: NodeJS.Timeout;

  constructor(streams: ReadonlySet<Beating>) {
    this.#streams = streams;
    this.#timer = setInterval(() => {
      this.tick(performance.now());
    }, TICK_MS);
    this.#timer.unref();
  }

  /** Public for tests; the timer calls it every second. */
  tick(nowMs: number): void {
    for (const stream of this.#streams) if (nowMs - stream.quietSinceMs >= SILENT_MS) stream.beat();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
