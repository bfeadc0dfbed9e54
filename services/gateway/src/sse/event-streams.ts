import type { Request, Response } from 'express';
import { AppError, limits } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnStreams } from '@concierge/turn';
import type { Drain } from '../http/drain.ts';
import type { GatewayMetrics } from '../metrics.ts';
import { EventStream, eventStreamHeaders, HeartbeatWheel, type StreamEncoding } from './event-stream.ts';

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
