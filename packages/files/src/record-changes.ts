import { join, basename } from 'node:path';
import { TenantId } from '@concierge/contract';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';

/**
 * For so long a mount may show the record of before: longer than the caches of attributes and names that are asked for
 * (docs/kubernetes.md).
 */
const TOLD_MS = 10_000;
/** Of all tenants; beyond that the oldest are forgotten, and files alone are believed. */
const TOLD_MAX = 10_000;

/** A record was replaced by one of this revision, or the one of this revision was removed. Carries nothing of it. */
export const RecordChange = z.object({
  tenantId: TenantId,
  /** The folder directly in the tenant's own. */
  store: z.string().regex(/^[a-z-]{1,40}$/u),
  name: z.string().regex(/^\w[\w.-]{0,99}$/u),
  /** Of the record: a text that only rises with its changes. */
  revision: z.string().max(100),
  isRemoved: z.boolean(),
});
export type RecordChange = z.infer<typeof RecordChange>;

/** Tells all processes of the deployment, this one included; does not wait, and does not throw. */
export type TellRecordChange = (change: RecordChange) => void;

export interface RecordChangesOptions {
  /** DATA_DIR/tenants, as this machine has it mounted. */
  readonly root: string;
  readonly tell: TellRecordChange | undefined;
}

/**
 * What processes tell each other of records that they changed. On a network file system a machine may for a while be
 * shown what a file was before; by the revision that it was told, a reader knows that it was. What is told can only
 * make a record out of date, never put one in its place, and is forgotten when the files show it, or after a while.
 */
export class RecordChanges {
  readonly #options: RecordChangesOptions;
  /** By the record's path. Without room ahead of use (`max` would allocate all of it). */
  readonly #told = new LRUCache<string, RecordChange>({ maxSize: TOLD_MAX, sizeCalculation: () => 1, ttl: TOLD_MS });

  constructor(options: RecordChangesOptions) {
    this.#options = options;
  }

  /**
   * This process has changed it, so that what it was told before is done with. `folder`: directly in the tenant's own.
   */
  tell(folder: string, change: Omit<RecordChange, 'store'>): void {
    this.#told.delete(toPath(folder, change.name));
    this.#options.tell?.({ ...change, store: basename(folder) });
  }

  /** A process has told it. @returns the record's path */
  hear(change: RecordChange): string {
    const path = toPath(join(this.#options.root, change.tenantId, change.store), change.name);
    this.#told.set(path, change);
    return path;
  }

  /** What the files may not show yet of a record. */
  find(folder: string, name: string): RecordChange | undefined {
    return this.#told.size === 0 ? undefined : this.#told.get(toPath(folder, name));
  }

  /** The files show it. */
  settle(folder: string, change: RecordChange): void {
    const path = toPath(folder, change.name);
    if (this.#told.get(path) === change) this.#told.delete(path);
  }
}

function toPath(folder: string, name: string): string {
  return join(folder, `${name}.json`);
}
