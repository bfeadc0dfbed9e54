import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tenantIdPattern } from '@concierge/contract';
import { KeyedMutex, type Log } from '@concierge/runtime';
import type { IndexBackend } from './database/backend.ts';
import type { IndexStore } from './index-store.ts';
import { PostgresBackend } from './database/postgres-backend.ts';
import { rebuildIndex } from './rebuild/rebuild.ts';
import { SqliteBackend } from './database/sqlite-backend.ts';
import { TenantIndex } from './tenant-index.ts';
import type { IndexSource } from './types.ts';

export interface OpenIndexOptions {
  /** `postgres://…`; without one, SQLite files under `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly log: Log;
}

/**
 * Tables and migrations make themselves when they are first needed. A database that does not answer now is logged and tried again with every
 * use: the index is not needed to accept a turn.
 */
export async function openIndex({ databaseUrl, dataDir, log }: OpenIndexOptions): Promise<IndexStore> {
  const backend =
    databaseUrl === undefined
      ? new SqliteBackend({ folder: join(dataDir, 'index'), bootId: currentBootId(), log })
      : new PostgresBackend({ url: databaseUrl, log });
  const store = storeOver(backend);
  await store.check().catch((error: unknown) => {
    log.warn({ err: error }, 'the index cannot be used yet');
  });
  return store;
}

/** An index over a backend that somebody else has set up. */
export function storeOver(backend: IndexBackend): IndexStore {
  const rebuilds = new KeyedMutex();
  const isFresh = async (accountId: string): Promise<boolean> =>
    (await backend.readBuilt(accountId, async () => Promise.resolve())) === undefined;
  const build = async (accountId: string, source: IndexSource): Promise<void> => {
    await rebuilds.run(accountId, async () => {
      if (await isFresh(accountId)) await rebuildIndex(backend, accountId, source);
    });
  };
  return {
    forTenant: (accountId, source) =>
      new TenantIndex({ accountId: named(accountId), backend, build: source && (async () => build(accountId, source)) }),
    isFresh: async (accountId) => isFresh(named(accountId)),
    rebuild: async (accountId, source) => rebuilds.run(named(accountId), async () => rebuildIndex(backend, accountId, source)),
    drop: async (accountId) => backend.drop(named(accountId)),
    check: async () => backend.check(),
    close: async () => backend.close(),
  };
}

/** The id becomes a folder's name. */
function named(accountId: string): string {
  if (!tenantIdPattern.test(accountId)) throw new TypeError(`${JSON.stringify(accountId)} is not a tenant id`);
  return accountId;
}

/** Where the system does not tell its boots apart, a power cut cannot be noticed: `concierge reindex --all` after one. */
function currentBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
