import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { Reconciler } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';
import { continueErasure, type ErasureOptions } from './erase-contact.ts';

const LOOK_EVERY_MS = 5000;

export interface ErasureReconcilerOptions extends ErasureOptions {
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'runningErasures'>;
  readonly log: Log;
}

/** Goes on with erasures of contacts that wait for turns or logs, or were cut off. */
export class ErasureReconciler extends Reconciler {
  readonly name = 'erasures';
  readonly #options: ErasureReconcilerOptions;

  constructor(options: ErasureReconcilerOptions) {
    super({ everyMs: LOOK_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { redis } = this.#options;
    await this.share(redis, { task: keyOf.erasureScanLock, everyMs: LOOK_EVERY_MS }, async () => this.continueAll());
  }

  /** One look through all tenants. */
  async continueAll(): Promise<void> {
    const { tenants, log } = this.#options;
    await this.forEachTenant(tenants, async (tenantId) => {
      for (const id of await tenants.runningErasures(tenantId)) {
        await continueErasure(this.#options, await tenants.open(tenantId), id).catch((error: unknown) => {
          log.error({ err: error, tenantId, erasure: id }, 'an erasure is not finished; tried again');
        });
      }
    });
  }
}
