import type { Request, Response } from 'express';
import { AppError, limits, type ChatReply } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { FollowSink, TurnStreams } from '@concierge/turn';
import type { Drain } from '../http/http-server.ts';
import type { GatewayMetrics } from '../metrics.ts';

export interface RepliesOptions {
  readonly turns: Pick<TurnStreams, 'fold' | 'follow' | 'isReadToEnd'>;
  readonly metrics: GatewayMetrics;
  readonly maxPerKey: number;
  readonly drain: Drain;
}

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

/** What one stream shows. */
export interface Watch {
  readonly scope: TenantScope;
  readonly turnId: string;
  readonly keyId: string;
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Default: our own encoding. */
  readonly encoding?: StreamEncoding;
}

/**
 * Answers with turns: as events, or folded into one reply. Limits the event streams for each key, sends heartbeats, and
 * ends every reply that still waits at shutdown.
 */
export class Replies implements Disposable {
  readonly #options: RepliesOptions;
  readonly #open = new Set<EventStream>();
  readonly #heartbeats = new Heartbeats(this.#open);
  readonly #perKey = new Map<string, number>();

  constructor(options: RepliesOptions) {
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
  stream(response: Response, watch: Watch): void {
    const { turns, drain, metrics } = this.#options;
    const { scope, turnId, keyId } = watch;
    response.writeHead(200, eventStreamHeaders);
    forgetRequest(response.req);
    if (response.req.method === 'HEAD') {
      response.end();
      return;
    }
    flushHeadersSoon(response);
    const held = drain.hold();
    const stream: EventStream = new EventStream(response, watch, () => {
      this.#forget(stream, keyId);
      held[Symbol.dispose]();
    });
    this.#open.add(stream);
    this.#perKey.set(keyId, (this.#perKey.get(keyId) ?? 0) + 1);
    metrics.openStreams.inc();
    // Before the server's listener, which cuts the client off.
    response.prependListener('timeout', () => {
      if (stream.isUnread) metrics.droppedClients.inc();
    });
    stream.endWith(turns.follow(scope, turnId, stream));
  }

  /**
   * The whole reply of a turn, once it has ended. `gone` ends the waiting, never the turn.
   * @throws AppError of a turn that failed
   */
  async fold({ scope, turnId }: Pick<Watch, 'scope' | 'turnId'>, gone: AbortSignal): Promise<ChatReply> {
    const { turns, drain } = this.#options;
    const folded = await turns.fold(scope, turnId, AbortSignal.any([gone, drain.ended]));
    if (folded.kind === 'error') throw new AppError(folded.error.code, folded.error.message);
    return folded.reply;
  }

  [Symbol.dispose](): void {
    this.#heartbeats[Symbol.dispose]();
    this.#endAll();
  }

  #endAll(): void {
    for (const stream of this.#open) stream.end();
  }

  #forget(stream: EventStream, keyId: string): void {
    this.#open.delete(stream);
    this.#options.metrics.openStreams.dec();
    const left = (this.#perKey.get(keyId) ?? 1) - 1;
    if (left === 0) this.#perKey.delete(keyId);
    else this.#perKey.set(keyId, left);
  }
}

/**
 * How a chat request wants its reply: JSON only when it accepts JSON and no event stream (contract §3). What accepts
 * neither gets events.
 */
export function replyFormat(request: Pick<Request, 'accepts' | 'headers'>): 'events' | 'json' {
  if (request.headers.accept === undefined || request.accepts('text/event-stream') !== false) return 'events';
  return request.accepts('application/json') === false ? 'events' : 'json';
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

/** A comment: keeps the connection alive, and no client sees it as an event. */
const COMMENT = ':\n\n';

/**
 * One client that reads one turn. It gets rendered text as it comes, but no more while it has
 * limits.sseMaxBufferedBytes unread. A client that takes nothing at all is dropped by the server's time-out, and
 * resumes.
 */
class EventStream implements FollowSink, Beating {
  readonly after: string | null;
  readonly #response: Response;
  readonly #encoding: StreamEncoding | undefined;
  readonly #onClose: () => void;
  #leave: (() => void) | undefined;
  #open = true;
  #room: Promise<void> | undefined;
  quietSinceMs = performance.now();

  /** `onClose`: called once, whichever way the stream ends. */
  constructor(response: Response, { after, encoding }: Pick<Watch, 'after' | 'encoding'>, onClose: () => void) {
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
