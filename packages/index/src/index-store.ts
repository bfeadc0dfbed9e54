import type { TenantIndex } from './tenant-index.ts';
import type { DriftReport, IndexSource } from './types.ts';

/**
 * The index of all tenants: a cache of their files' content. Losing it loses nothing (contract §7.5).
 *
 * Errors: `overloaded` when the database cannot be reached or stays locked.
 */
export interface IndexStore {
  /**
   * The one tenant's part. With a `source`, a read that meets an index that was never built, or was lost, rebuilds it
   * first, so that deleting it changes no answer. Cheap: nothing is opened before the first use.
   */
  forTenant(tenantId: string, source?: IndexSource): TenantIndex;
  /** True until a rebuild has filled this tenant's index from its files; true again after the index was lost. */
  isFresh(tenantId: string): Promise<boolean>;
  /**
   * Makes the index match the files, in one transaction at the end; readers see the old content until then. What is
   * written while it runs is kept.
   */
  rebuild(tenantId: string, source: IndexSource): Promise<DriftReport>;
  /** Forgets all of a tenant. */
  drop(tenantId: string): Promise<void>;
  /** For readiness: rejects when the database does not answer. */
  check(): Promise<void>;
  close(): Promise<void>;
}
