import { background, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { HandoffCalls } from './handoff-calls.ts';

const WATCH_EVERY_MS = 5000;
/** A look through all tenants costs at most a hundredth of one replica's time. */
const WATCH_LOAD = 100;

export interface HandoffWatchOptions {
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'untoldHandoffs'>;
  readonly calls: Pick<HandoffCalls, 'tell'>;
  readonly log: Log;
}

/** Tells of handoffs whose teller died before everybody knew, or could not reach everybody. In every worker: what two tell is told once. */
export class HandoffWatch {
  readonly #options: HandoffWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopped = false;

  constructor(options: HandoffWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#wait(WATCH_EVERY_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#looking?.catch(() => undefined);
  }

  /** One look through all tenants. */
  async look(): Promise<void> {
    const { tenants, calls, log } = this.#options;
    for (const accountId of await tenants.list()) {
      if (this.#stopped) return;
      try {
        if ((await tenants.untoldHandoffs(accountId)).length > 0) await calls.tell(await tenants.open(accountId));
      } catch (error) {
        log.error({ err: error, accountId }, 'cannot look for handoffs that nobody has been told of');
      }
    }
  }

  #wait(ms: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      const began = performance.now();
      this.#looking = this.look().finally(() => {
        this.#looking = undefined;
        this.#wait(Math.max(WATCH_EVERY_MS, (performance.now() - began) * WATCH_LOAD));
      });
      background(this.#looking, this.#options.log);
    }, ms);
  }
}
