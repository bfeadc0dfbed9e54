import type { Redis } from 'ioredis';
import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { Reconciler } from './due/reconciler.ts';
import type { HandoffCalls } from './handoff-calls.ts';
import { keyOf } from './keys.ts';

const WATCH_EVERY_MS = 5000;

export interface HandoffWatchOptions {
  readonly redis: Redis;
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'untoldHandoffs'>;
  readonly calls: Pick<HandoffCalls, 'tell'>;
  readonly log: Log;
}

/** Notifies of handoffs whose requester died before everybody knew, or could not reach everybody. What two processes notify of is notified of once. */
export class HandoffWatch extends Reconciler {
  readonly name = 'handoff watch';
  readonly #options: HandoffWatchOptions;

  constructor(options: HandoffWatchOptions) {
    super({ everyMs: WATCH_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    await this.share(this.#options.redis, { task: keyOf.handoffScanLock, everyMs: WATCH_EVERY_MS }, async () => this.#look());
  }

  /** One look through all tenants. */
  async #look(): Promise<void> {
    const { tenants, calls, log } = this.#options;
    for (const accountId of await tenants.list()) {
      if (this.isStopped) return;
      try {
        if ((await tenants.untoldHandoffs(accountId)).length > 0) await calls.tell(await tenants.open(accountId));
      } catch (error) {
        log.error({ err: error, accountId }, 'cannot look for handoffs that nobody has been told of');
      }
    }
  }
}
