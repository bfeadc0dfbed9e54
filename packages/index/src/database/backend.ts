import type { Log } from '@concierge/runtime';
import type { Kysely } from 'kysely';
import type { CompiledQueries } from './compiled-queries.ts';
import type { IndexDialect, IndexTables } from './tables.ts';

export type Work<Result> = (db: Kysely<IndexTables>) => Promise<Result>;

/** An exclusive connection, for temporary tables. */
export interface OwnConnection {
  readonly db: Kysely<IndexTables>;
  /** One transaction on it; no other write of the tenant runs meanwhile. */
  alone<Result>(work: Work<Result>): Promise<Result>;
  /**
   * One transaction on it; nothing of the tenant is removed, and no other rebuild writes, meanwhile. What is put may be
   * put.
   */
  settled<Result>(work: Work<Result>): Promise<Result>;
}

/** Connections of a PostgreSQL server. */
export interface ConnectionLimits {
  /** Its max_connections. */
  readonly max: number;
  /** Of these, those that only superusers and other named roles get. */
  readonly reserved: number;
  /** What other clients than this deployment have open at this moment. */
  readonly others: number;
}

/**
 * What differs between the two databases: how a tenant's rows are reached, kept apart and locked. `work` may run more
 * than once (it is rolled back before it runs again), and must do nothing but query.
 */
export interface IndexBackend {
  readonly dialect: IndexDialect;
  readonly queries: CompiledQueries;
  readonly log: Log;
  read<Result>(tenantId: string, work: Work<Result>): Promise<Result>;
  /**
   * Reads only what a rebuild has filled (that may be a second ago); undefined, without running `work`, when none has.
   */
  readBuilt<Result>(tenantId: string, work: Work<Result>): Promise<{ readonly result: Result } | undefined>;
  /** As `read`; returns whether this database compares vectors itself. */
  readVectors<Result>(tenantId: string, work: (db: Kysely<IndexTables>, canCompare: boolean) => Promise<Result>): Promise<Result>;
  /** One transaction. */
  write<Result>(tenantId: string, work: Work<Result>): Promise<Result>;
  /** One statement, without the cost of a transaction around it where it can be done without. */
  writeOne<Result>(tenantId: string, work: Work<Result>): Promise<Result>;
  /** One transaction; no other write of the tenant runs meanwhile. */
  writeAlone<Result>(tenantId: string, work: Work<Result>): Promise<Result>;
  /** The connection is closed when `work` is done. */
  withOwnConnection<Result>(tenantId: string, work: (own: OwnConnection) => Promise<Result>): Promise<Result>;
  /** False: nothing was ever written of the tenant, or it was dropped. */
  isThere(tenantId: string): boolean;
  /** What was deleted is in no free page, log or segment of the database's own files, where it can be asked to. */
  scrub(tenantId: string): Promise<void>;
  drop(tenantId: string): Promise<void>;
  check(): Promise<void>;
  /** How many connections the database's server allows; undefined where there is no server. */
  readConnectionLimits(): Promise<ConnectionLimits | undefined>;
  close(): Promise<void>;
}
