import { background, type Log } from '@concierge/runtime';
import type { WakeupQueue } from './wakeup-queue.ts';
import type { Lanes } from './lanes.ts';

export interface DebounceTimerOptions {
  readonly lanes: Pick<Lanes, 'findDue'>;
  readonly wakeupQueue: Pick<WakeupQueue, 'wake'>;
  readonly log: Log;
}

/**
 * Starts debounced lanes when they are due: one timer per process, set to the earliest due time. Every process that
 * debounces a lane has this timer, and it asks for all debounced lanes. When the process dies, the reconciler does the
 * same a little later.
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

  /** A lane is due then; its due time may still move. */
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
    // Searches run one after the other: the next one sees lanes that become due meanwhile.
    this.#dueLanes = (this.#dueLanes ?? Promise.resolve()).catch(() => undefined).then(async () => this.#findDue());
    background(this.#dueLanes, this.#options.log);
  }

  async #findDue(): Promise<void> {
    const { lanes, wakeupQueue } = this.#options;
    const { wakeups, nextInMs } = await lanes.findDue();
    // At least one millisecond: the clocks of two machines round differently.
    if (nextInMs !== null) this.expect(Math.max(nextInMs, 1));
    await wakeupQueue.wake(wakeups);
  }
}
