import { join } from 'node:path';
import { tenantIdPattern } from '@concierge/contract';
import { ConfigError, hideCredentials, KeyedMutex, postgresErrorCode, readBootId, type Log } from '@concierge/runtime';
import type { ConnectionLimits, IndexBackend } from './database/backend.ts';
import { compareIndex, rebuildIndex } from './rebuild/rebuild.ts';
import { SqliteBackend } from './database/sqlite-backend.ts';
import { PendingPuts } from './lists/write-sessions.ts';
import { TenantIndex } from './tenant-index.ts';
import type { IndexSource, DriftReport } from './types.ts';

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
  /** What a rebuild would put right; the lists stay as they are. */
  compare(tenantId: string, source: IndexSource): Promise<DriftReport>;
  /** Forgets all of a tenant. */
  drop(tenantId: string): Promise<void>;
  /** For readiness: rejects when the database does not answer. */
  check(): Promise<void>;
  /** How many connections the database's server allows; undefined for SQLite. */
  readConnectionLimits(): Promise<ConnectionLimits | undefined>;
  close(): Promise<void>;
}

export interface OpenIndexOptions {
  /** `postgres://…`; without one, SQLite files under `dataDir`. */
  readonly databaseUrl: string | undefined;
  /** Connections to PostgreSQL that this process opens at most. */
  readonly databasePool?: number | undefined;
  readonly dataDir: string;
  readonly log: Log;
}

/**
 * Tables and migrations make themselves when they are first needed. A database that does not answer now is logged and
 * tried again with every use: the index is not needed to accept a turn.
 * @throws ConfigError when it answers, and does not let this process in
 */
export async function openIndex({ databaseUrl, databasePool, dataDir, log }: OpenIndexOptions): Promise<IndexStore> {
  // Where the system does not tell its boots apart, a power cut is not noticed: `concierge reindex --all` after one.
  const backend =
    databaseUrl === undefined
      ? new SqliteBackend({ folder: join(dataDir, 'index'), bootId: readBootId() || 'unknown', log })
      : await openPostgresBackend(databaseUrl, { max: databasePool, log });
  const store = storeOver(backend);
  try {
    await store.check();
  } catch (error) {
    const refusal = findRefusal(error);
    if (refusal === undefined || databaseUrl === undefined) {
      log.warn({ err: error }, 'the index cannot be used yet');
      return store;
    }
    await store.close();
    throw new ConfigError([
      `DATABASE_URL: must lead to a database that lets this process in (${hideCredentials(databaseUrl)}: ${refusal})`,
    ]);
  }
  return store;
}

/**
 * https://www.postgresql.org/docs/current/errcodes-appendix.html: a wrong password or role, no such database, no right
 * to connect, and a server that has no connection left for this process.
 */
const refusals: ReadonlySet<string | undefined> = new Set(['28P01', '28000', '3D000', '42501', '53300']);

function findRefusal(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (refusals.has(postgresErrorCode(at))) return at.message;
  }
  return undefined;
}

/** Its client is loaded only where it is used. */
async function openPostgresBackend(url: string, options: { readonly max: number | undefined; readonly log: Log }): Promise<IndexBackend> {
  const { PostgresBackend } = await import('./database/postgres-backend.ts');
  return new PostgresBackend({ url, ...options });
}

/** An index over a backend that the caller has set up. */
export function storeOver(backend: IndexBackend): IndexStore {
  const rebuilds = new KeyedMutex();
  const pending = new PendingPuts(backend);
  const isFresh = async (tenantId: string): Promise<boolean> =>
    (await backend.readBuilt(tenantId, async () => Promise.resolve())) === undefined;
  const build = async (tenantId: string, source: IndexSource): Promise<void> => {
    await rebuilds.run(tenantId, async () => {
      if (await isFresh(tenantId)) await rebuildIndex(backend, tenantId, source);
    });
  };
  return {
    forTenant: (tenantId, source) =>
      new TenantIndex({
        tenantId: named(tenantId),
        backend,
        pending,
        files: source && { build: async () => build(tenantId, source), catchUpContacts: async () => source.catchUpContacts() },
      }),
    isFresh: async (tenantId) => isFresh(named(tenantId)),
    rebuild: async (tenantId, source) => rebuilds.run(named(tenantId), async () => rebuildIndex(backend, tenantId, source)),
    compare: async (tenantId, source) => rebuilds.run(named(tenantId), async () => compareIndex(backend, tenantId, source)),
    drop: async (tenantId) => {
      pending.forget(tenantId);
      await backend.drop(named(tenantId));
    },
    check: async () => backend.check(),
    readConnectionLimits: async () => backend.readConnectionLimits(),
    close: async () => {
      await pending.stop();
      await backend.close();
    },
  };
}

/** The id becomes a folder's name. */
function named(tenantId: string): string {
  if (!tenantIdPattern.test(tenantId)) throw new TypeError(`${JSON.stringify(tenantId)} is not a tenant id`);
  return tenantId;
}
