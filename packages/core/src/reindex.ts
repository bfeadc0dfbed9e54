import { countDrift, type Reindexed, type ReindexBody, type TenantDrift } from '@concierge/contract';
import type { Asked, TenantOperations } from './tenant-operations.ts';
import { walkTenants, type TenantWalkOptions } from './tenant-walk.ts';

/** After so long a step ends with the tenant that it is at: who asked sees how far it is. */
const STEP_MS = 5000;

export interface ReindexingOptions extends TenantWalkOptions {
  readonly operations: Pick<TenantOperations, 'open' | 'record'>;
}

/** Compares the index of all tenants with their files, for the command line and the operators' API alike. */
export class Reindexing {
  readonly #options: ReindexingOptions;

  constructor(options: ReindexingOptions) {
    this.#options = options;
  }

  /**
   * One tenant after the other, for some seconds; a dry run changes nothing. A tenant whose index was made to match its
   * files goes on record, whatever differed.
   * @throws AppError not_found, invalid_request, overloaded
   */
  async reindexSome({ tenant, dryRun, cursor }: ReindexBody, asked?: Asked): Promise<Reindexed> {
    const startedMs = performance.now();
    const tenants: TenantDrift[] = [];
    let nextCursor: string | null = null;
    const steps = walkTenants<TenantDrift>(this.#options, {
      tenant,
      cursor,
      read: async (scope) => {
        const drift = await (dryRun ? scope.compareIndex() : scope.reindex());
        if (!dryRun) await this.#options.operations.record('index.rebuild', { scope, ...(asked !== undefined && { asked }) });
        return { items: [{ tenantId: scope.tenantId, drifted: countDrift({ drift }) > 0, drift }], nextCursor: null };
      },
    });
    for await (const { items, next } of steps) {
      tenants.push(...items);
      nextCursor = next;
      if (performance.now() - startedMs >= STEP_MS) break;
    }
    return { dryRun, tenants, nextCursor };
  }
}
