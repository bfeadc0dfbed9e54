import { background, type Log } from '@concierge/runtime';
import type { ForgetTenant, Tenants } from '@concierge/tenant';

const SWEEP_EVERY_MS = 10 * 60_000;

export interface RemovedTenantsOptions {
  readonly tenants: Pick<Tenants, 'sweepRemoved'>;
  readonly forget: ForgetTenant;
  readonly log: Log;
}

/** Finishes deletions of tenants that were cut off, at the start and now and then. */
export class RemovedTenants {
  readonly #options: RemovedTenantsOptions;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;

  constructor(options: RemovedTenantsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), SWEEP_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping?.catch(() => undefined);
  }

  #tick(): void {
    if (this.#sweeping !== undefined) return;
    this.#sweeping = this.#sweep().finally(() => (this.#sweeping = undefined));
    background(this.#sweeping, this.#options.log);
  }

  async #sweep(): Promise<void> {
    const { tenants, forget, log } = this.#options;
    const swept = await tenants.sweepRemoved(forget);
    if (swept > 0) log.info({ swept }, 'deletions of tenants that were cut off are finished');
  }
}
