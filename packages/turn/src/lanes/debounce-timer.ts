import { background, type Log } from '@concierge/runtime';
import type { WakeupQueue } from './wakeup-queue.ts';
import type { Lanes } from './lanes.ts';

export interface DebounceTimerOptions {
  readonly lanes: Pick<Lanes, 'findDue'>;
  readonly wakeupQueue: Pick<WakeupQueue, 'wake'>;
  readonly log: Log;
}

/**
 * Lets go of lanes that are debounced, in time: one timer for a whole process, set to the nearest. Every process that holds one back has it, and it asks for
 * all lanes there are; should it die, the reconciler does the same a little later.
 */
export class DebounceTimer {
  readonly #options: DebounceTimerOptions;
  #timer: NodeJS.Timeout | undefined;
  #atMs = Infinity;
  #dueLanes: Promise<void> | undefined;
  #stopped = false;

  constructor(options: DebounceTimerOptions) {
    this.#options = options;
  }

  /** A lane may be let go then; its time may still move. */
  expect(inMs: number): void {
    const atMs = performance.now() + inMs;
    if (this.#stopped || atMs >= this.#atMs) return;
    clearTimeout(this.#timer);
    this.#atMs = atMs;
    this.#timer = setTimeout(() => {
      this.#wake();
    }, inMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#dueLanes?.catch(() => undefined);
  }

  #wake(): void {
    this.#atMs = Infinity;
    // One after the other: what is due meanwhile is seen by the next.
    this.#dueLanes = (this.#dueLanes ?? Promise.resolve()).catch(() => undefined).then(async () => this.#findDue());
    background(this.#dueLanes, this.#options.log);
  }

  async #findDue(): Promise<void> {
    const { lanes, wakeupQueue } = this.#options;
    const { wakeups, nextInMs } = await lanes.findDue();
    // A millisecond at least: clocks of two machines round apart.
    if (nextInMs !== null) this.expect(Math.max(nextInMs, 1));
    await wakeupQueue.wake(wakeups);
  }
}
