import { background, type Log } from '@concierge/runtime';
import type { Doorbells } from './doorbells.ts';
import type { Lanes } from './lanes.ts';

export interface RipenerOptions {
  readonly lanes: Pick<Lanes, 'ripen'>;
  readonly doorbells: Pick<Doorbells, 'ring'>;
  readonly log: Log;
}

/**
 * Lets go of lanes that are held back, in time: one timer for a whole process, set to the nearest. Every process that holds one back has it, and it asks for
 * all lanes there are; should it die, the sweeper does the same a little later.
 */
export class Ripener {
  readonly #options: RipenerOptions;
  #timer: NodeJS.Timeout | undefined;
  #atMs = Infinity;
  #ripening: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RipenerOptions) {
    this.#options = options;
  }

  /** A lane may be let go then; its time may still move. */
  expect(inMs: number): void {
    const atMs = performance.now() + inMs;
    if (this.#stopped || atMs >= this.#atMs) return;
    clearTimeout(this.#timer);
    this.#atMs = atMs;
    this.#timer = setTimeout(() => {
      this.#ring();
    }, inMs);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#ripening?.catch(() => undefined);
  }

  #ring(): void {
    this.#atMs = Infinity;
    // One after the other: what ripens meanwhile is seen by the next.
    this.#ripening = (this.#ripening ?? Promise.resolve()).catch(() => undefined).then(async () => this.#ripen());
    background(this.#ripening, this.#options.log);
  }

  async #ripen(): Promise<void> {
    const { lanes, doorbells } = this.#options;
    const { rings, nextInMs } = await lanes.ripen();
    // A millisecond at least: clocks of two machines round apart.
    if (nextInMs !== null) this.expect(Math.max(nextInMs, 1));
    await doorbells.ring(rings);
  }
}
