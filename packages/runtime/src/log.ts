import { pino, type Logger } from 'pino';
import { pinoPretty } from './pretty.ts';

export type Log = Logger;

export interface LogOptions {
  readonly service: string;
  readonly level: string;
  /** Readable lines instead of JSON ones; for terminals. */
  readonly pretty?: boolean;
  /** For commands, whose standard output is their answer. */
  readonly toStderr?: boolean;
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
];
const keyPattern = /ck_live_[\w-]+/gu;

/** Fields, one line each, on stdout. Secrets are removed by path, and keys by their pattern wherever they turn up in a message. */
export function createLog({ service, level, pretty = false, toStderr = false }: LogOptions): Log {
  const options = {
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: secretPaths, censor: '[redacted]' },
    hooks: {
      streamWrite: (line: string): string => (line.includes('ck_live_') ? line.replaceAll(keyPattern, 'ck_live_[redacted]') : line),
    },
  };
  if (toStderr) return pino(options, pino.destination({ fd: 2, sync: true }));
  return pretty ? pino(options, pinoPretty()) : pino(options);
}
