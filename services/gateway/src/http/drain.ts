import { setTimeout as wait } from 'node:timers/promises';
import { AppError } from '@concierge/contract';

/**
 * The phases in which a service stops: serving → leaving (not ready any more, so that the balancer sends nothing new;
 * what still comes is served) → draining (no new work; replies that wait for a turn go on) → ended (replies that still
 * wait are ended with an error).
 */
export class Drain {
  readonly #end = new AbortController();
  #leaving = false;
  #draining = false;
  #replies = 0;
  #onIdle: (() => void) | undefined;

  /** From here on the service reports not ready. */
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

  /** Resolves after the time that the balancer has to notice. */
  async leave(forMs: number): Promise<void> {
    this.#leaving = true;
    if (forMs > 0) await wait(forMs);
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
