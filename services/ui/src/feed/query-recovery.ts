import { backoffMs } from '@concierge/contract';

/** Some seconds after a query has given up; what fails although the service is ready is asked for ever more seldom. */
const waits = { firstMs: 5000, maxMs: 30_000, jitter: 0.2 } as const;

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

  constructor(options: QueryRecoveryOptions) {
    this.#options = options;
  }

  /** Something has failed. Resolves when nothing that is shown has. */
  async begin(): Promise<void> {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    const { hasFailed, isReady, askAgain, wait } = this.#options;
    for (let attempt = 1; hasFailed(); attempt += 1) {
      await wait(backoffMs(attempt, waits));
      // The user may have asked meanwhile.
      if (hasFailed() && (await isReady())) await askAgain();
    }
    this.#isUnderWay = false;
  }
}
