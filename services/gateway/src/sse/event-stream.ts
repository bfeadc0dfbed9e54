import type { Response } from 'express';
import { limits } from '@concierge/contract';
import type { FollowSink } from '@concierge/turn';
import type { Beating } from './heartbeat-wheel.ts';

export const eventStreamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** A comment: keeps the connection alive, and no client sees it as an event. */
const COMMENT = ':\n\n';

export interface EventStreamOptions {
  readonly response: Response;
  readonly keyId: string;
  /** `Last-Event-ID`, or null for the whole turn. */
  readonly after: string | null;
  /** Called once, whichever way the stream ends. */
  onClose(stream: EventStream): void;
  onDrop(): void;
}

/**
 * One client that reads one turn. It gets rendered text as it comes and is never waited for: who leaves more than
 * limits.sseMaxBufferedBytes unread is dropped, and resumes.
 */
export class EventStream implements FollowSink, Beating {
  readonly after: string | null;
  readonly keyId: string;
  readonly #response: Response;
  readonly #options: Pick<EventStreamOptions, 'onClose' | 'onDrop'>;
  #leave: (() => void) | undefined;
  #open = true;
  quietSinceMs = performance.now();

  constructor(options: EventStreamOptions) {
    this.#response = options.response;
    this.after = options.after;
    this.keyId = options.keyId;
    this.#options = options;
    this.#response.once('close', () => {
      this.#closed();
    });
  }

  /** What ends the subscription behind the stream; called at once when the client has gone already. */
  endWith(leave: () => void): void {
    if (this.#open) this.#leave = leave;
    else leave();
  }

  write(sse: string): void {
    if (!this.#open) return;
    this.quietSinceMs = performance.now();
    this.#response.write(sse);
    if (this.#response.writableLength <= limits.sseMaxBufferedBytes) return;
    this.#options.onDrop();
    this.#response.destroy();
    this.#closed();
  }

  beat(): void {
    this.write(COMMENT);
  }

  /** Ends the answer in good order: what was written still goes out. */
  end(): void {
    if (!this.#open) return;
    this.#response.end();
    this.#closed();
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#leave?.();
    this.#leave = undefined;
    this.#options.onClose(this);
  }
}
