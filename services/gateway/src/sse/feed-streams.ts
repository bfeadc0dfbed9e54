import type { Response } from 'express';
import { AppError, limits } from '@concierge/contract';
import type { FeedReader, TenantFeeds } from '@concierge/turn';
import type { GatewayMetrics } from '../metrics.ts';
import type { SharedCounts } from '../processes/shared-counts.ts';
import { beginEventStream, EventStream, Heartbeats, type StreamOwner } from './event-stream.ts';

export interface FeedStreamsOptions {
  readonly feeds: Pick<TenantFeeds, 'follow' | 'followAll'>;
  readonly metrics: GatewayMetrics;
  readonly counts: SharedCounts;
}

/** Who reads, and what. */
export interface FeedWatch {
  readonly tenantId: string;
  readonly keyId: string;
}

/**
 * Answers with what changes of a tenant, for ten minutes at most: a key that was revoked meanwhile is then asked for
 * again. The end of the service ends them, and does not wait for them.
 */
export class FeedStreams implements Disposable, StreamOwner {
  readonly #options: FeedStreamsOptions;
  readonly #streams = new Set<EventStream>();
  readonly #heartbeats = new Heartbeats(this.#streams);

  constructor(options: FeedStreamsOptions) {
    this.#options = options;
  }

  /** @throws AppError `overloaded` */
  stream(response: Response, { tenantId, keyId }: FeedWatch): void {
    this.#open({ response, keyId }, (reader) => this.#options.feeds.follow(tenantId, reader));
  }

  /** For operators, counted together: what changes of all tenants, and by the clock that figures may be other. */
  streamAll(response: Response): void {
    this.#open({ response, keyId: 'operators' }, (reader) => {
      const leave = this.#options.feeds.followAll(reader);
      const figures = setInterval(() => reader.write(FIGURES), limits.operatorFiguresEveryMs).unref();
      return () => {
        clearInterval(figures);
        leave();
      };
    });
  }

  #open({ response, keyId }: { readonly response: Response; readonly keyId: string }, follow: (reader: FeedReader) => () => void): void {
    const { counts, metrics } = this.#options;
    if (counts.total(toCountName(keyId)) >= limits.feedsPerKey)
      throw new AppError('overloaded', 'This key reads too many feeds.', { retryAfterSeconds: 5 });
    if (!beginEventStream(response)) return;
    const stream = new EventStream(response, { after: null, keyId }, this);
    this.#streams.add(stream);
    counts.add(toCountName(keyId), 1);
    metrics.openStreams.inc();
    metrics.streams.inc();
    const timer = setTimeout(() => stream.end(), limits.feedMs).unref();
    const leave = follow({
      write: (sse) => {
        // One that does not take what it is given has to read everything again in any case.
        if (stream.room() === undefined) stream.write(sse);
        else stream.end();
      },
    });
    stream.endWith(() => {
      clearTimeout(timer);
      leave();
    });
  }

  /** Called by a stream that has ended. */
  forget(stream: EventStream): void {
    this.#streams.delete(stream);
    this.#options.metrics.openStreams.dec();
    this.#options.counts.add(toCountName(stream.keyId), -1);
  }

  [Symbol.dispose](): void {
    this.#heartbeats[Symbol.dispose]();
    for (const stream of this.#streams) stream.end();
  }
}

const FIGURES = 'event: figures\ndata: {}\n\n';

const toCountName = (keyId: string): string => `feeds/${keyId}`;
