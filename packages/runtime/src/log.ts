import { createRequire } from 'node:module';
import { pino, type Logger, type LoggerOptions, type DestinationStream } from 'pino';
import type { PinoPretty } from 'pino-pretty';
import { keptLines } from './kept-lines.ts';

export type Log = Logger;

export interface LogOptions {
  readonly service: string;
  readonly level: string;
  /** Readable lines instead of JSON ones; for terminals. */
  readonly pretty?: boolean;
  /** For commands, whose standard output is their result. */
  readonly toStderr?: boolean;
  /** Other processes write into the same stream: lines name their process, and none is torn by another's. */
  readonly isOneOfSeveral?: boolean;
}

const secretPaths = [
  'key',
  'apiKey',
  'accessToken',
  'botToken',
  'secretToken',
  'authorization',
  'headers.authorization',
  'headers["x-api-key"]',
  'req.headers',
  // ioredis hangs the command on its error: what turns say is among the arguments.
  'err.command.args',
  'err.previousErrors[*].command.args',
];
const keyPattern = /ck_live_[\w-]+/gu;

/**
 * Writes fields, one line per entry, to stdout. Secrets are removed by path, and keys by their pattern anywhere in a
 * message.
 */
export function createLog({ service, level, pretty = false, toStderr = false, isOneOfSeveral = false }: LogOptions): Log {
  const options = {
    level,
    base: isOneOfSeveral ? { service, pid: process.pid } : { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secretPaths, censor: '[redacted]' },
    hooks: {
      streamWrite: (line: string): string => {
        const written = line.includes('ck_live_') ? line.replaceAll(keyPattern, 'ck_live_[redacted]') : line;
        keptLines.add(written);
        return written;
      },
    },
  };
  if (toStderr) return pino(options, pino.destination({ fd: 2, sync: true }));
  if (pretty) return pino(options, pinoPretty());
  return level === 'silent' ? pino(options) : bufferedLog(options, isOneOfSeveral ? wholeLines : {});
}

/**
 * Lines are buffered up to this size or time and written in one system call: one call per line costs as much as making
 * the line.
 */
const BUFFER_BYTES = 8 * 1024;
const BUFFER_MS = 100;
/** POSIX writes as much into a pipe in one piece (PIPE_BUF); of more, other processes may write into the middle. */
const PIECE_BYTES = 4096;
const wholeLines = { minLength: PIECE_BYTES / 2, maxWrite: PIECE_BYTES };
const ERROR_LEVEL = 50;

/** An error is written at once, with all lines before it: the process may not live much longer. */
function bufferedLog(options: LoggerOptions, writing: { readonly minLength?: number; readonly maxWrite?: number }): Log {
  const stdout = pino.destination({ fd: 1, sync: true, minLength: BUFFER_BYTES, ...writing });
  const flush = (): void => {
    // Written before flushSync, which retries for ever when the reader is gone: here the write fails with EPIPE, and
    // pino stops logging.
    stdout.flush();
    stdout.flushSync();
  };
  setInterval(flush, BUFFER_MS).unref();
  process.once('exit', flush);
  const logMethod: NonNullable<LoggerOptions['hooks']>['logMethod'] = function logAndFlush(args, method, level) {
    method.apply(this, args);
    if (level >= ERROR_LEVEL) flush();
  };
  return pino({ ...options, hooks: { ...options.hooks, logMethod } }, stdout);
}

/** Loaded on demand: services behind a log collector never pay for it. */
function pinoPretty(): DestinationStream {
  const require = createRequire(import.meta.url);
  const { build }: typeof PinoPretty = require('pino-pretty');
  return build({ colorize: true, ignore: 'hostname,service', translateTime: 'HH:MM:ss', sync: true });
}
