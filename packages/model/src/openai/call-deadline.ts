import { fellSilent, timedOut, type CallFailure } from './call-failure.ts';
import type { ModelLimits } from './limits.ts';

/** calling → waiting (headers came) → speaking (text or a call began) → finished (finish reason seen). */
export type CallPhase = 'calling' | 'waiting' | 'speaking' | 'finished';

/**
 * Ends one attempt when the caller aborts, when the provider falls silent for too long, or when it all takes too long.
 */
export class CallDeadline {
  readonly #limits: ModelLimits;
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  readonly #overall: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  #phase: CallPhase = 'calling';
  #expired: CallFailure | undefined;

  constructor(caller: AbortSignal, limits: ModelLimits) {
    this.#caller = caller;
    this.#limits = limits;
    this.#overall = setTimeout(() => this.#expire(timedOut(`no end after ${String(limits.attemptMs)} ms`)), limits.attemptMs);
    this.#silence = this.#watch();
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  /** For the request. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The failure, when it was this deadline that ended the attempt. */
  get expired(): CallFailure | undefined {
    return this.#expired;
  }

  /** The provider gave a sign of life. */
  heard(phase: CallPhase): void {
    if (phase === this.#phase) {
      this.#silence.refresh();
      return;
    }
    this.#phase = phase;
    clearTimeout(this.#silence);
    this.#silence = this.#watch();
  }

  /** Call it when the attempt is over. */
  clear(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#overall);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#caller.reason);

  #watch(): NodeJS.Timeout {
    const { headersMs, firstByteMs, idleMs, afterFinishMs } = this.#limits;
    const patienceMs = { calling: Math.min(headersMs, firstByteMs), waiting: firstByteMs, speaking: idleMs, finished: afterFinishMs };
    const silenceMs = patienceMs[this.#phase];
    return setTimeout(() => this.#expire(fellSilent(`nothing from the provider for ${String(silenceMs)} ms`)), silenceMs);
  }

  #expire(failure: CallFailure): void {
    this.#expired = failure;
    this.#controller.abort(failure);
  }
}
