import { HOUR_MS } from '@concierge/contract';
import { removeExpired, type Tenants } from '@concierge/tenant';
import type { Log } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { Reconciler } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';

export interface RetentionReconcilerOptions {
  readonly tenants: Pick<Tenants, 'list' | 'open'>;
  readonly redis: Redis;
  readonly log: Log;
  readonly now: () => number;
}

/** How often a process asks whether it is its turn to look. */
const ASK_EVERY_MS = 60_000;

/** Removes what tenants keep no longer, by the rule of each; one process at a time, once an hour. */
export class RetentionReconciler extends Reconciler {
  readonly name = 'retention';
  readonly #options: RetentionReconcilerOptions;

  constructor(options: RetentionReconcilerOptions) {
    super({ everyMs: ASK_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    await this.share(this.#options.redis, { task: keyOf.retentionScanLock, everyMs: HOUR_MS }, async () => this.removeAll());
  }

  /** One look through all tenants. What a look does not reach is the next one's. */
  async removeAll(): Promise<void> {
    const { tenants, log, now } = this.#options;
    await this.forEachTenant(tenants, async (tenantId) => {
      const scope = await tenants.open(tenantId);
      const { retention: rule = {} } = await scope.settings();
      if (Object.keys(rule).length === 0) return;
      const { sessions, history, uploads } = await removeExpired(scope, { rule, nowMs: now() });
      const counts = { sessions: sessions.length, history: history.length, uploads: uploads.length };
      if (Object.values(counts).some((count) => count > 0)) log.info({ tenantId, ...counts }, 'removed what has expired');
    });
  }
}
