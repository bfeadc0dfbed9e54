import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@concierge/contract';
import type { SharedCounts } from '../processes/shared-counts.ts';

/** The balancer takes a gateway out after two refusals (infra/balancer); the third comes when it has done so. */
const REFUSALS = 3;
const LOOK_MS = 50;

/**
 * The phases in which a service stops: serving → leaving (not ready any more, so that the balancer sends nothing new;
 * what still comes is served) → draining (no new work; replies that wait for a turn go on) → ended (replies that still
 * wait are ended with an error).
 */
export class Drain {
  readonly #counts: SharedCounts;
  readonly #end = new AbortController();
  #asked = false;
  #leaving = false;
  #draining = false;
  #replies = 0;
  #onIdle: (() => void) | undefined;

  /** `counts`: over all processes of the gateway, any of which may be asked for readiness. */
  constructor(counts: SharedCounts) {
    this.#counts = counts;
  }

  /** Readiness is asked for: whether it is refused because the service leaves. */
  refuseReadiness(): boolean {
    if (!this.#asked) this.#counts.add('asked for readiness', 1);
    this.#asked = true;
    if (this.#leaving) this.#counts.add('readiness refused', 1);
    return this.#leaving;
  }

  /** From here on the service reports not ready. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /**
   * Has the client of an answer that has not begun open its next connection elsewhere: one that stayed open would be
   * closed when its next request may already be on its way. Called when a request comes, and again when it was handled:
   * the service may have begun to leave in between.
   */
  closeAfter(response: ServerResponse): void {
    if (this.#leaving) response.shouldKeepAlive = false;
  }

  /** Aborts, with an AppError `shutting_down`, when the grace is over. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** Like `hold`, for a request that waits for a turn, until it is disposed of. @throws AppError `shutting_down` */
  admit(): Disposable {
    if (this.#draining) throw shuttingDown();
    this.hold();
    return {
      [Symbol.dispose]: () => {
        this.letGo();
      },
    };
  }

  /** A reply waits for its turn; `letGo` when it does no longer. */
  hold(): void {
    this.#replies += 1;
  }

  letGo(): void {
    this.#replies -= 1;
    if (this.#replies === 0) this.#onIdle?.();
  }

  /**
   * Resolves after the time that the balancer has to notice. Where readiness is asked for it also waits until it was
   * refused often enough, `atMostMs` in all: on a busy machine a balancer's looks come late.
   */
  async leave({ forMs, atMostMs }: { readonly forMs: number; readonly atMostMs: number }): Promise<void> {
    this.#leaving = true;
    const startedMs = performance.now();
    if (forMs > 0) await wait(forMs);
    while (this.#isAskedInVain() && performance.now() - startedMs < atMostMs) await wait(LOOK_MS);
  }

  #isAskedInVain(): boolean {
    return this.#counts.total('asked for readiness') > 0 && this.#counts.total('readiness refused') < REFUSALS;
  }

  /** Resolves when no reply waits any more: all have ended by themselves, or were ended after the grace. */
  async run(graceMs: number): Promise<void> {
    this.#leaving = true;
    this.#draining = true;
    const { promise: idle, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    if (this.#replies === 0) resolve();
    const deadline = setTimeout(() => {
      this.#end.abort(shuttingDown());
    }, graceMs);
    await idle;
    clearTimeout(deadline);
  }
}

function shuttingDown(): AppError {
  return new AppError('shutting_down', undefined, { retryAfterSeconds: 2 });
}
