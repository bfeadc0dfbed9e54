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
 * released.
 */
function forgetRequest(request: Request): void {
  // Assigned, not deleted: a deleted property makes the whole object a slow and large one.
  Object.assign(request, { headers: {}, rawHeaders: [], body: undefined, next: undefined });
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
  readonly #response: Response;
  readonly #encoding: StreamEncoding | undefined;
  readonly #onClose: () => void;
  #leave: (() => void) | undefined;
  #open = true;
  #room: Promise<void> | undefined;
  quietSinceMs = performance.now();

  /** `onClose`: called once, whichever way the stream ends. */
  constructor(response: Response, { after, encoding }: StreamStart, onClose: () => void) {
    this.#response = response;
    this.after = after;
    this.#encoding = encoding;
    this.#onClose = onClose;
    response.once('close', () => {
      this.#closed();
    });
  }

  /** Ends the subscription behind the stream; called at once when the client has gone already. */
  endWith(leave: () => void): void {
    if (this.#open) this.#leave = leave;
    else leave();
  }

  /** Whether its client has something to read that it does not take. */
  get isUnread(): boolean {
    return this.#open && this.#response.writableLength > 0;
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
    this.#response.write(text);
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#leave?.();
    this.#leave = undefined;
    this.#onClose();
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
