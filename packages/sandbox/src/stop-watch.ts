/** Why a command was ended before its own end. */
export type StopReason = 'timed_out' | 'stopped' | 'out_of_memory';

/** Reports once, with the reason, when a command's time is over or its caller cancels it. */
export class StopWatch implements Disposable {
  readonly #signal: AbortSignal;
  readonly #onStop: (reason: StopReason) => void;
  readonly #timer: NodeJS.Timeout;
  #reason: StopReason | undefined;

  constructor(timeoutMs: number, signal: AbortSignal, onStop: (reason: StopReason) => void) {
    this.#signal = signal;
    this.#onStop = onStop;
    this.#timer = setTimeout(() => {
      this.stop('timed_out');
    }, timeoutMs);
    signal.addEventListener('abort', this.#abort);
    if (signal.aborted) this.#abort();
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#onStop(reason);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => {
    this.stop('stopped');
  };
}
