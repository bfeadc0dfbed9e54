import type { Redis } from 'ioredis';
import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { Reconciler } from './due/reconciler.ts';
import type { HandoffNotifications } from './handoff-notifications.ts';
import { keyOf } from './keys.ts';

const WATCH_EVERY_MS = 5000;

export interface HandoffReconcilerOptions {
  readonly redis: Redis;
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'pendingHandoffs'>;
  readonly calls: Pick<HandoffNotifications, 'tell'>;
  readonly log: Log;
}

/**
 * Writes missing notifications of handoffs whose requester died or failed before all were written. A notification that
 * two processes write is sent once.
 */
export class HandoffReconciler extends Reconciler {
  readonly name = 'handoff watch';
  readonly #options: HandoffReconcilerOptions;

  constructor(options: HandoffReconcilerOptions) {
    super({ everyMs: WATCH_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    await this.share(this.#options.redis, { task: keyOf.handoffScanLock, everyMs: WATCH_EVERY_MS }, async () => this.#look());
  }

  /** Scans all tenants once. */
  async #look(): Promise<void> {
    const { tenants, calls, log } = this.#options;
    for (const tenantId of await tenants.list()) {
      if (this.isStopped) return;
      try {
        if ((await tenants.pendingHandoffs(tenantId)).length > 0) await calls.tell(await tenants.open(tenantId));
      } catch (error) {
        log.error({ err: error, tenantId }, 'cannot look for handoffs with pending notifications');
      }
    }
  }
}
