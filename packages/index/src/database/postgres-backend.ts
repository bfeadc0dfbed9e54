import { AppError } from '@concierge/contract';
import { countIndexError, isPostgresUnavailable, postgresErrorCode, type Log } from '@concierge/runtime';
import { applicationName, openPostgres, type PostgresConnection } from '@concierge/runtime/postgres';
import { Kysely, sql, type Transaction } from 'kysely';
import type { ConnectionLimits, IndexBackend, OwnConnection, Work } from './backend.ts';
import { CompiledQueries } from './compiled-queries.ts';
import { readMeta } from './meta.ts';
import { isTooNew, migrations, NewerIndexError, oldestReader } from './migrations.ts';
import { indexTableNames, type IndexTables } from './tables.ts';

export interface PostgresBackendOptions {
  readonly url: string;
  /** Connections that this process opens at most; a rebuild takes one more. */
  readonly max?: number | undefined;
  readonly log: Log;
}

/**
 * Per tenant, until the transaction ends: `read` takes no lock; `shared` keeps `alone` out and the other way round;
 * `settled` is `shared`, and keeps other ones of its kind out.
 */
type Access = 'read' | 'shared' | 'alone' | 'settled';

/** Any constant, the same in all processes. */
const MIGRATION_LOCK = 7_245_861_309;
/** A rebuild's last transaction may replace every row of a large tenant. */
const REBUILD_STATEMENT_TIMEOUT_MS = 15 * 60_000;
/** A step that waits for a table keeps all others from it: it gives up and is tried again with the next use. */
const STEP_LOCK_TIMEOUT = '3s';
const UNDEFINED_TABLE = '42P01';
const DEADLOCK = '40P01';
const ATTEMPTS_MAX = 3;

/**
 * All tenants in one database, kept apart by row-level security: each transaction names its tenant, and each query
 * names it again (`migrations.ts` has the reasons). The tables are made on first use, and made again when they were
 * dropped. A rebuild keeps one connection for its temporary tables: a pooler in between must be in session mode, or
 * give `DATABASE_URL` a way round it.
 */
export class PostgresBackend implements IndexBackend {
  readonly dialect = 'postgres';
  readonly queries = new CompiledQueries();
  readonly log: Log;
  readonly #options: PostgresBackendOptions;
  readonly #connection: PostgresConnection;
  readonly #db: Kysely<IndexTables>;
  #migrated: Promise<void> | undefined;

  constructor(options: PostgresBackendOptions) {
    this.#options = options;
    this.log = options.log;
    this.#connection = openPostgres(options);
    this.#db = new Kysely({ dialect: this.#connection.dialect });
  }

  async read<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#bound({ tenantId, access: 'read' }, work);
  }

  /** Asked with every read, in the same transaction: an index that another process lost answers nothing. */
  async readBuilt<Result>(tenantId: string, work: Work<Result>): Promise<{ readonly result: Result } | undefined> {
    return this.read(tenantId, async (db) =>
      (await readMeta(db, tenantId, 'built')) !== undefined ? { result: await work(db) } : undefined,
    );
  }

  /** It can only with an extension that distributions do not carry: the vectors are compared here. */
  async readVectors<Result>(tenantId: string, work: (db: Kysely<IndexTables>, canCompare: boolean) => Promise<Result>): Promise<Result> {
    return this.read(tenantId, async (db) => work(db, false));
  }

  async write<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#bound({ tenantId, access: 'shared' }, work);
  }

  /** The policies ask for a transaction that names the tenant. */
  async writeOne<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.write(tenantId, work);
  }

  async writeAlone<Result>(tenantId: string, work: Work<Result>): Promise<Result> {
    return this.#bound({ tenantId, access: 'alone' }, work);
  }

  async withOwnConnection<Result>(tenantId: string, work: (own: OwnConnection) => Promise<Result>): Promise<Result> {
    return this.#available(async () => {
      const connection = openPostgres({ ...this.#options, max: 1, statementTimeoutMs: REBUILD_STATEMENT_TIMEOUT_MS });
      try {
        const db = new Kysely<IndexTables>({ dialect: connection.dialect });
        return await db.connection().execute(async (own) =>
          work({
            db: own,
            alone: async (change) => transaction(own, { tenantId, access: 'alone' }, change),
            settled: async (change) => transaction(own, { tenantId, access: 'settled' }, change),
          }),
        );
      } finally {
        await connection.close();
      }
    });
  }

  isThere(): boolean {
    return true;
  }

  /** The server's own vacuum overwrites what was deleted; no query reaches it. */
  async scrub(): Promise<void> {
    return Promise.resolve();
  }

  async drop(tenantId: string): Promise<void> {
    await this.writeAlone(tenantId, async (db) => {
      for (const name of indexTableNames) await db.deleteFrom(name).where('account_id', '=', tenantId).execute();
    });
  }

  async check(): Promise<void> {
    await this.#available(async () => sql`select 1`.execute(this.#db));
  }

  async readConnectionLimits(): Promise<ConnectionLimits> {
    const { rows } = await this.#available(async () =>
      sql<ConnectionLimits>`
      select current_setting('max_connections')::int as max,
        current_setting('superuser_reserved_connections')::int
          + coalesce(current_setting('reserved_connections', true), '0')::int as reserved,
        (select count(*)::int from pg_stat_activity
          where datid is not null and usesysid is not null and not (datname = current_database() and application_name = ${applicationName})) as others
    `.execute(this.#db),
    );
    const [limits] = rows;
    if (limits === undefined) throw new TypeError('the database answers without its settings');
    return limits;
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #bound<Result>(binding: Binding, work: Work<Result>): Promise<Result> {
    return this.#available(async () => transaction(this.#db, binding, work));
  }

  async #available<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      await this.#ensureTables();
      return await work().catch(async (error: unknown) => {
        if (postgresErrorCode(error) !== UNDEFINED_TABLE) throw error;
        this.#migrated = undefined;
        await this.#ensureTables();
        return work();
      });
    } catch (error) {
      if (!isPostgresUnavailable(error)) throw error;
      countIndexError();
      throw new AppError('overloaded', 'The index cannot be reached', { cause: error, retryAfterSeconds: 2 });
    }
  }

  async #ensureTables(): Promise<void> {
    this.#migrated ??= this.#migrate();
    try {
      await this.#migrated;
    } catch (error) {
      this.#migrated = undefined;
      throw error;
    }
  }

  async #migrate(): Promise<void> {
    await this.#db.transaction().execute(async (db) => migrate(db));
    const { rows } = await sql<{
      above: boolean;
    }>`select rolsuper or rolbypassrls as above from pg_roles where rolname = current_user`.execute(this.#db);
    if (rows[0]?.above === true)
      this.#options.log.warn('the database role is above row-level security: use a role that is neither superuser nor BYPASSRLS');
  }
}

interface Binding {
  readonly tenantId: string;
  readonly access: Access;
}

/** Two that lock rows in another order end one of them; run again, it comes to the same. */
async function transaction<Result>(db: Kysely<IndexTables>, binding: Binding, work: Work<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(async (bound) => {
        await bind(bound, binding);
        return work(bound);
      });
    } catch (error) {
      if (postgresErrorCode(error) !== DEADLOCK || attempt >= ATTEMPTS_MAX) throw error;
    }
  }
}

/** As a separate statement: what comes after it sees everything that the former holder of the lock has committed. */
async function bind(db: Transaction<IndexTables>, { tenantId, access }: Binding): Promise<void> {
  const key = sql`hashtextextended(${`concierge-index/${tenantId}`}, 0)`;
  const setting = sql`set_config('app.account_id', ${tenantId}, true)`;
  switch (access) {
    case 'read': {
      await sql`select ${setting}`.execute(db);
      return;
    }
    case 'shared': {
      await sql`select ${setting}, pg_advisory_xact_lock_shared(${key})`.execute(db);
      return;
    }
    case 'settled': {
      await sql`select ${setting}, pg_advisory_xact_lock_shared(${key})`.execute(db);
      await sql`select pg_advisory_xact_lock(hashtextextended(${`concierge-rebuild/${tenantId}`}, 0))`.execute(db);
      return;
    }
    case 'alone': {
      await sql`select ${setting}, pg_advisory_xact_lock(${key})`.execute(db);
      return;
    }
  }
}

async function migrate(db: Transaction<IndexTables>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(db);
  await sql`create table if not exists index_version (version int not null, oldest_reader int)`.execute(db);
  // Tables of earlier versions do not name their oldest reader.
  const { rows } = await sql<{ version: number; oldest_reader?: number | null }>`select * from index_version`.execute(db);
  const version = rows[0]?.version ?? 0;
  if (isTooNew({ version, oldestReader: rows[0]?.oldest_reader ?? undefined })) throw new NewerIndexError('PostgreSQL');
  if (version >= migrations.length) return;
  await sql`select set_config('lock_timeout', ${STEP_LOCK_TIMEOUT}, true)`.execute(db);
  for (const step of migrations.slice(version)) await step(db, 'postgres');
  await sql`alter table index_version add column if not exists oldest_reader int`.execute(db);
  await sql`delete from index_version`.execute(db);
  await sql`insert into index_version (version, oldest_reader) values (${migrations.length}, ${oldestReader})`.execute(db);
}
