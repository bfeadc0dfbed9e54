import { PostgresDialect, type Dialect } from 'kysely';
import { Pool, types } from 'pg';
import type { Log } from './log.ts';

export interface PostgresOptions {
  /** `postgres://…` */
  readonly url: string;
  readonly log: Log;
  /** The maximum of connections of this process. */
  readonly max?: number | undefined;
  /** The server ends a statement after this; a little later the client stops waiting for a server that is gone. */
  readonly statementTimeoutMs?: number;
}

export interface PostgresConnection {
  readonly pool: Pool;
  /** The dialect for one `Kysely`; `destroy` of that Kysely ends the pool. */
  readonly dialect: Dialect;
  close(): Promise<void>;
}

/** By which the server's statistics know our connections. */
export const applicationName = 'concierge';

const POOL_MAX = 10;
/**
 * For a new connection, and for a free one of the pool. As long as a statement may take: a server on a busy machine, or
 * a process that stood still, exceeds less. A server that refuses says so at once.
 */
const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** How much longer than the server the client waits: the server's own error is the better one. */
const ANSWER_GRACE_MS = 2000;
const IDLE_TIMEOUT_MS = 30_000;

/**
 * A pool whose broken connections never end the process: an idle one is dropped, a busy one fails its query. Connects
 * on first use. `bigint` columns are read as numbers, exact up to 2⁵³.
 */
export function openPostgres(options: PostgresOptions): PostgresConnection {
  const statementTimeoutMs = options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS;
  const pool = new Pool({
    connectionString: options.url,
    application_name: applicationName,
    max: options.max ?? POOL_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
    idle_in_transaction_session_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
    keepAlive: true,
    types: { getTypeParser: chooseParser },
  });
  pool.on('error', (error) => {
    options.log.warn({ err: error }, 'an idle connection to postgres was lost');
  });
  // pg takes its own listener off a client that is checked out; without one, a lost connection is an uncaught 'error'
  // event.
  pool.on('connect', (client) => {
    client.on('error', (error) => {
      options.log.debug({ err: error }, 'a connection to postgres was lost');
    });
  });
  let closed: Promise<void> | undefined;
  return { pool, dialect: new PostgresDialect({ pool }), close: () => (closed ??= pool.end()) };
}

const chooseParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
  oid === types.builtins.INT8 && format !== 'binary' ? Number : types.getTypeParser(oid, format === 'binary' ? 'text' : format);
