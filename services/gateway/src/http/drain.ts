import { AppError } from '@concierge/contract';

/**
 * The end of a service's life.
 * serving → draining (no new work; replies that wait for a turn go on) → ended (those that still wait are told to go elsewhere).
 */
export class Drain {
  readonly #end = new AbortController();
  #draining = false;
  #replies = 0;
  #onIdle: (() => void) | undefined;

  get draining(): boolean {
    return this.#draining;
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

  /** Resolves when no reply waits any more: because all have ended, or because the grace was over and they were told to. */
  async run(graceMs: number): Promise<void> {
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
