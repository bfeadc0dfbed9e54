import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@concierge/contract';

/**
 * The end of a service's life.
 * serving → leaving (not ready any more, so that the balancer sends nothing new; what still comes is served) → draining (no new work; replies
 * that wait for a turn go on) → ended (those that still wait are told to go elsewhere).
 */
export class Drain {
  readonly #end = new AbortController();
  #leaving = false;
  #draining = false;
  #replies = 0;
  #onIdle: (() => void) | undefined;

  /** From here on readiness says no. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /** Aborts, with an AppError `shutting_down`, when the grace is over. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** @throws AppError `shutting_down` */
  refuseNewWork(): void {
    if (this.#draining) throw shuttingDown();
  }

  /** A reply waits for its turn. Call `release` when it has ended, whichever way. */
  hold(): void {
    this.#replies += 1;
  }

  release(): void {
    this.#replies -= 1;
    if (this.#replies === 0) this.#onIdle?.();
  }

  /** Resolves when the balancer has had this long to notice. */
  async leave(forMs: number): Promise<void> {
    this.#leaving = true;
    if (forMs > 0) await wait(forMs);
  }

  /** Resolves when no reply waits any more: because all have ended, or because the grace was over and they were told to. */
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
