import { backoffMs } from '@concierge/contract';

/** Between two looks whether the service is back, from some seconds after a query has given up. */
const waits = { firstMs: 5000, maxMs: 30_000, jitter: 0.2 } as const;
/** What fails although the service is ready is asked for so often with each look, and then ever more seldom. */
const EAGER_TIMES = 3;
const RESTS_MAX = 31;

export interface QueryRecoveryOptions {
  /** Whether something that is shown has failed and may succeed later; false when the page is left. */
  readonly hasFailed: () => boolean;
  /** Whether the service answers again; does not reject. */
  readonly isReady: () => Promise<boolean>;
  /** Asks again for what has failed; does not reject. */
  readonly askAgain: () => Promise<void>;
  /** Resolves after the time, or as soon as there is reason to hope. */
  readonly wait: (ms: number) => Promise<void>;
}

/**
 * Asks again for what has failed while the service was away, once it is back. The feed does not tell of it: its
 * connection may stay while Redis is silent for longer than a query tries, and it names no more than what changes.
 * The service is asked whether it is ready, which counts against no allowance; a query that is asked in vain would
 * take the problem and its button away each time.
 */
export class QueryRecovery {
  readonly #options: QueryRecoveryOptions;
  #isUnderWay = false;
  #isAsking = false;
  #inVain = 0;
  /** Looks that pass before it asks again: each request counts, and what is too slow would keep the service busy. */
  #rests = 0;

  constructor(options: QueryRecoveryOptions) {
    this.#options = options;
  }

  /** Something has failed. Resolves when nothing that is shown has. */
  async begin(): Promise<void> {
    // Asked for by a page or its user: the service may have gone away again.
    if (!this.#isAsking) {
      this.#inVain = 0;
      this.#rests = 0;
    }
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    for (let look = 1; this.#options.hasFailed(); look += 1) {
      await this.#options.wait(backoffMs(look, waits));
      await this.#look();
    }
    this.#isUnderWay = false;
  }

  async #look(): Promise<void> {
    const { hasFailed, isReady, askAgain } = this.#options;
    if (this.#rests > 0) {
      this.#rests -= 1;
      return;
    }
    // The user may have asked meanwhile.
    if (!hasFailed() || !(await isReady())) return;
    this.#isAsking = true;
    await askAgain();
    this.#isAsking = false;
    this.#inVain += 1;
    this.#rests = Math.min(2 ** Math.max(0, this.#inVain - EAGER_TIMES) - 1, RESTS_MAX);
  }
}
