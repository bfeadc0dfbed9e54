import type { Log } from '@concierge/runtime';
import type { ForgetTenant, Tenants } from '@concierge/tenant';
import { Reconciler } from '@concierge/turn';

const SWEEP_EVERY_MS = 10 * 60_000;

export interface RemovedTenantsOptions {
  readonly tenants: Pick<Tenants, 'sweepRemoved'>;
  readonly forget: ForgetTenant;
  readonly log: Log;
}

/** Finishes interrupted deletions of tenants, at the start and at intervals. */
export class RemovedTenants extends Reconciler {
  readonly name = 'removed tenants';
  readonly #options: RemovedTenantsOptions;

  constructor(options: RemovedTenantsOptions) {
    super({ everyMs: SWEEP_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { tenants, forget, log } = this.#options;
    const swept = await tenants.sweepRemoved(forget);
    if (swept > 0) log.info({ swept }, 'interrupted deletions of tenants are finished');
  }
}
