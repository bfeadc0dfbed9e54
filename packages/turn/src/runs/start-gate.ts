import { backoffMs } from '@concierge/contract';
import { waitForAnswer } from '@concierge/runtime';

/**
 * How long a suspect waits for the others to finish a step, and has to finish one of its own; twice as long after each
 * death that could not be attributed. Time in which this process ran: it stands still for all of them.
 */
const ALONE_MS = 10_000;
const ALONE_MAX_MS = 64 * ALONE_MS;

/**
 * When turns may start in a process. A turn that has not finished a step since it was started here is *unproven*: when
 * the process dies, that turn may be the cause. A suspect, whose workers have died twice, starts when no other turn is
 * unproven, and no turn starts beside it until it has finished a step or used its time: a death can then be attributed
 * to it (docs/decisions/0007-crash-starts.md). open → closed (a suspect waits for the others, then runs) → open.
 */
export class StartGate {
  readonly #onOpen: () => void;
  readonly #unproven = new Set<object>();
  #closed: PromiseWithResolvers<void> | undefined;
  #quiet: (() => void) | undefined;

  /** `onOpen` is called each time a suspect has had its time alone. */
  constructor(onOpen: () => void) {
    this.#onOpen = onOpen;
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** Resolves when the gate opens; it may be closed again by then. */
  async opened(): Promise<void> {
    await this.#closed?.promise;
  }

  /**
   * Call before a lease is requested.
   * @returns a function to call when the turn is proven, has ended, or was not leased
   */
  enter(): () => void {
    const token = {};
    this.#unproven.add(token);
    return () => {
      if (this.#unproven.delete(token) && this.#unproven.size === 0) this.#quiet?.();
    };
  }

  /**
   * Closes the gate, waits for the others, and runs a suspect. The gate opens when the suspect calls `proven`, when it
   * has ended, and when its time is over. Call it while the gate is open.
   * @param voids deaths that could not be attributed so far
   */
  async runAlone(voids: number, run: (proven: () => void) => Promise<void>): Promise<void> {
    const aloneMs = backoffMs(voids + 1, { firstMs: ALONE_MS, maxMs: ALONE_MAX_MS });
    await this.#close(aloneMs);
    const leave = this.enter();
    let isAlone = true;
    const endAlone = (): void => {
      if (isAlone) this.#open();
      isAlone = false;
    };
    void waitForAnswer(aloneMs).then(endAlone);
    const proven = (): void => {
      leave();
      endAlone();
    };
    try {
      await run(proven);
    } finally {
      proven();
    }
  }

  /** Nothing starts until `#open`. Resolves when nothing is unproven, or after `patienceMs`. */
  async #close(patienceMs: number): Promise<void> {
    this.#closed = Promise.withResolvers<void>();
    if (this.#unproven.size === 0) return;
    const quiet = Promise.withResolvers<void>();
    this.#quiet = quiet.resolve;
    await Promise.race([quiet.promise, waitForAnswer(patienceMs)]);
    this.#quiet = undefined;
  }

  #open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
    this.#onOpen();
  }
}
