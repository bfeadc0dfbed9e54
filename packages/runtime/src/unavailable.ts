import { isPostgresUnavailable, postgresErrorCode } from './postgres.ts';
import { isRedisUnavailable } from './redis.ts';
import { sqliteErrorCode } from './sqlite.ts';

/** Failures of the machine, not of the request: disk, descriptors, memory, a connection to another process. */
const machineCodes = new Set([
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ESTALE',
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
