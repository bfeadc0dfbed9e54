import type { Redis } from 'ioredis';
import { isPostgresUnavailable, postgresErrorCode } from './postgres.ts';
import { sqliteErrorCode } from './sqlite.ts';

/** The first words of Redis' error answers for temporary failures. */
const passingReplies = new Set(['OOM', 'LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'MISCONF', 'NOREPLICAS', 'BUSY', 'TRYAGAIN']);

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

const ofRedis = new WeakSet<Error>();

/**
 * ioredis rejects with plain errors when a connection is gone, cut or too slow: they are recorded where a command is
 * rejected.
 */
export function noteRedisFailures(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    const { reject } = command;
    command.reject = (error) => {
      if (error.name !== 'ReplyError' || passingReplies.has(error.message.split(' ', 1)[0] ?? '')) ofRedis.add(error);
      reject(error);
    };
    return send(command, stream);
  };
}

/** Whether a failure comes from the disk, Redis or the index, so that the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (ofRedis.has(at) || hasMachineCode(at) || sqliteCodes.has(sqliteErrorCode(at))) return true;
    if (postgresErrorCode(at) !== undefined && isPostgresUnavailable(at)) return true;
  }
  return false;
}

function hasMachineCode(error: Error): boolean {
  return 'code' in error && typeof error.code === 'string' && machineCodes.has(error.code);
}
