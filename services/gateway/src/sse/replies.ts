import type { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { AppError, limits, type ChatReply } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnStreams } from '@concierge/turn';
import type { Drain } from '../http/http-server.ts';
import type { GatewayMetrics } from '../metrics.ts';
import type { SharedCounts } from '../processes/shared-counts.ts';
import { beginEventStream, EventStream, Heartbeats, type StreamOwner, type StreamStart } from './event-stream.ts';

export interface RepliesOptions {
  readonly turns: Pick<TurnStreams, 'fold' | 'follow' | 'isReadToEnd'>;
  readonly metrics: GatewayMetrics;
  readonly counts: SharedCounts;
  readonly maxPerKey: number;
  readonly drain: Drain;
}

/** What one stream shows. */
export interface Watch extends StreamStart {
  readonly scope: TenantScope;
  readonly turnId: string;
}

/**
 * Answers with turns: as events, or folded into one reply. Limits the event streams for each key, sends heartbeats, and
 * ends every reply that still waits at shutdown.
 */
export class Replies implements Disposable, StreamOwner {
  readonly #options: RepliesOptions;
  readonly #open = new Set<EventStream>();
  readonly #heartbeats = new Heartbeats(this.#open);
  /** One function for all streams. A client that has something to read and does not take it is about to be cut off. */
  readonly #countDropped = ({ writableLength }: Socket): void => {
    if (writableLength > 0) this.#options.metrics.droppedClients.inc();
  };

  readonly #endAll = (): void => {
    for (const stream of this.#open) stream.end();
  };

  constructor(options: RepliesOptions) {
    this.#options = options;
    // Their clients resume on another gateway.
    options.drain.ended.addEventListener('abort', this.#endAll);
  }

  /** Asked before a turn is accepted: what cannot be answered is not taken. @throws AppError `overloaded` */
  refuseWhenFull(keyId: string, whose: 'key' | 'visitor' = 'key'): void {
    const atMost = whose === 'key' ? this.#options.maxPerKey : limits.widgetStreamsPerVisitor;
    if (this.#options.counts.total(toCountName(keyId)) < atMost) return;
    throw new AppError('overloaded', `This ${whose} has too many open streams.`, { retryAfterSeconds: 5 });
  }

  /** Whether there is nothing left to send to a client. An EventSource that is answered 204 does not come back. */
  async isOver({ scope, turnId, after }: Pick<Watch, 'scope' | 'turnId' | 'after'>): Promise<boolean> {
    return after !== null && (await this.#options.turns.isReadToEnd(scope, turnId, after));
  }

  /** Answers with the events of a turn. A client that goes away ends its stream, never the turn. */
  stream(response: Response, watch: Watch): void {
    const { turns, drain, metrics, counts } = this.#options;
    const { scope, turnId, keyId } = watch;
    if (!beginEventStream(response)) return;
    drain.hold();
    const stream = new EventStream(response, watch, this);
    this.#open.add(stream);
    counts.add(toCountName(keyId), 1);
    metrics.openStreams.inc();
    metrics.streams.inc();
    // Before the server's listener, which cuts the client off.
    response.prependListener('timeout', this.#countDropped);
    stream.endWith(turns.follow(scope, turnId, stream));
    // Its turn was accepted while Redis was slow: the abort has ended the other streams already, and comes once.
    if (drain.ended.aborted) stream.end();
  }

  /** Called by a stream that has ended. */
  forget(stream: EventStream): void {
    const { drain, metrics, counts } = this.#options;
    this.#open.delete(stream);
    metrics.openStreams.dec();
    counts.add(toCountName(stream.keyId), -1);
    drain.letGo();
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
}

const toCountName = (keyId: string): string => `streams/${keyId}`;

/**
 * How a chat request wants its reply: JSON only when it accepts JSON and no event stream (contract §3). What accepts
 * neither gets events.
 */
export function replyFormat(request: Pick<Request, 'accepts' | 'headers'>): 'events' | 'json' {
  if (request.headers.accept === undefined || request.accepts('text/event-stream') !== false) return 'events';
  return request.accepts('application/json') === false ? 'events' : 'json';
}
