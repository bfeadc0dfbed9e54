import { LRUCache } from 'lru-cache';
import type { TenantScope } from './tenant-scope.ts';

/**
 * The open tenants of a process. Those that were used last stay open, and every other as long as a caller has it: a
 * tenant has one scope in a process, which holds its locks.
 */
export class OpenScopes {
  readonly #kept: LRUCache<string, TenantScope>;
  readonly #had = new Map<string, WeakRef<TenantScope>>();
  readonly #gone = new FinalizationRegistry<string>((tenantId) => {
    if (this.#had.get(tenantId)?.deref() === undefined) this.#had.delete(tenantId);
  });

  constructor(max: number) {
    // `maxSize` takes no room ahead of use.
    this.#kept = new LRUCache({ maxSize: max, sizeCalculation: () => 1 });
  }

  get(tenantId: string): TenantScope | undefined {
    const kept = this.#kept.get(tenantId);
    if (kept !== undefined) return kept;
    const scope = this.#had.get(tenantId)?.deref();
    if (scope !== undefined) this.#kept.set(tenantId, scope);
    return scope;
  }

  add(scope: TenantScope): TenantScope {
    const { tenantId } = scope;
    this.#kept.set(tenantId, scope);
    this.#had.set(tenantId, new WeakRef(scope));
    this.#gone.register(scope, tenantId);
    return scope;
  }

  delete(tenantId: string): void {
    this.#kept.delete(tenantId);
    this.#had.delete(tenantId);
  }
}
