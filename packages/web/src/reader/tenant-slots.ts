import { LRUCache } from 'lru-cache';
import { Slots } from './slots.ts';

/** Tenants whose share is known; one that is forgotten while it is busy gets another. */
const tenantsMax = 10_000;

export interface TenantSlotsOptions {
  /** Tasks at once, over all tenants. */
  readonly count: number;
  /** Of one tenant: fewer, so that the others never find all of them taken. */
  readonly perTenant: number;
}

/** Room for so many tasks at once, of which no tenant has all: whoever brings thousands waits for itself, and nobody waits for it. */
export class TenantSlots {
  readonly #all: Slots;
  readonly #shares = new LRUCache<string, Slots>({ max: tenantsMax });
  readonly #perTenant: number;

  constructor({ count, perTenant }: TenantSlotsOptions) {
    this.#all = new Slots(count);
    this.#perTenant = perTenant;
  }

  async run<Result>(accountId: string, task: () => Promise<Result>): Promise<Result> {
    return this.#shareOf(accountId).run(async () => this.#all.run(task));
  }

  #shareOf(accountId: string): Slots {
    const known = this.#shares.get(accountId);
    if (known !== undefined) return known;
    const share = new Slots(this.#perTenant);
    this.#shares.set(accountId, share);
    return share;
  }
}
