import { createRequire } from 'node:module';
import type { DestinationStream } from 'pino';
import type { PinoPretty } from 'pino-pretty';

/** Loaded on demand: services behind a log collector never pay for it. */
export function pinoPretty(): DestinationStream {
  const require = createRequire(import.meta.url);
  const { build }: typeof PinoPretty = require('pino-pretty');
  return build({ colorize: true, ignore: 'pid,hostname,service', translateTime: 'HH:MM:ss', sync: true });
}
