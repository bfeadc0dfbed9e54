import { isRedisUnavailable } from './redis.ts';
import { sqliteErrorCode } from './sqlite.ts';

/**
 * Of a network file system: another machine has replaced or removed what was open or looked up. libuv has no name for
 * it (ESTALE, 116 of Linux).
 */
export const staleCode = 'Unknown system error -116';

/** What a later version has written waits for it (packages/files, record-folder.ts). */
export const laterVersionCode = 'LATER_VERSION';

/** Failures of the machine, not of the request: disk, descriptors, memory, a connection to another process. */
const machineCodes = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  staleCode,
  laterVersionCode,
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
]);

/** https://www.sqlite.org/rescode.html: BUSY, LOCKED, IOERR, FULL. */
const sqliteCodes: ReadonlySet<number | undefined> = new Set([5, 6, 10, 13]);

/** Whether a failure comes from the disk, Redis or the index, so that the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (isRedisUnavailable(at) || hasMachineCode(at) || sqliteCodes.has(sqliteErrorCode(at))) return true;
    if (postgresErrorCode(at) !== undefined && isPostgresUnavailable(at)) return true;
  }
  return false;
}

function hasMachineCode(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && machineCodes.has(error.code);
}

/**
 * SQLSTATE classes, https://www.postgresql.org/docs/current/errcodes-appendix.html: connection, resources, operator's
 * intervention.
 */
const unavailableClasses = new Set(['08', '53', '57']);
const serializationFailures = new Set(['40001', '40P01', '55P03']);

/** Five characters such as `42P01`; undefined for what did not come from the server. */
export function postgresErrorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error) || typeof error.code !== 'string') return undefined;
  return /^[0-9A-Z]{5}$/u.test(error.code) ? error.code : undefined;
}

/**
 * Whether the database's state, not the query, caused the failure: the same query may then succeed later. What pg
 * itself throws for a connection that cannot be made, is lost or stays silent is a plain `Error` without SQLSTATE; a
 * defect of ours is a `TypeError` or its like.
 */
export function isPostgresUnavailable(error: unknown): boolean {
  const code = postgresErrorCode(error);
  if (code !== undefined) return unavailableClasses.has(code.slice(0, 2)) || serializationFailures.has(code);
  return typeof error === 'object' && error !== null && 'name' in error && (error.name === 'Error' || error.name === 'AggregateError');
}
