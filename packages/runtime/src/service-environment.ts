import { resolve } from 'node:path';
import { z } from 'zod';
import { ConfigError } from './config.ts';

/** Spread into a schema; `mayUseDemoModel` reads it. */
export const demoModelEnvironment = {
  NODE_ENV: z.string().optional(),
  /** The built-in demo model may answer in production, too. */
  DEMO_MODEL: z.stringbool('must be 1 or 0').default(false),
};

/** Where no provider has a usable key: always outside of production, and there only when DEMO_MODEL=1 says so. */
export function mayUseDemoModel({
  NODE_ENV,
  DEMO_MODEL,
}: {
  readonly NODE_ENV?: string | undefined;
  readonly DEMO_MODEL: boolean;
}): boolean {
  return DEMO_MODEL || NODE_ENV !== 'production';
}

/** What every service over tenants' files reads from its environment (contract §1); spread into its own schema. */
export const serviceEnvironment = {
  DATA_DIR: z.string().default('./data'),
  REDIS_URL: z.string().regex(/^(?:rediss?:\/\/|unix:\/)/u, 'must be a redis:// address or unix:/path'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//u, 'must be a postgres:// address')
    .optional(),
  KEY_SECRET: z.string().min(32, 'must have at least 32 characters'),
  SECRETS_KEY: z.string().min(32, 'must have at least 32 characters').optional(),
  SHUTDOWN_GRACE_S: z.coerce.number().nonnegative().max(3600).default(25),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  LOG_PRETTY: z.stringbool().optional(),
  NODE_ENV: z.string().optional(),
  FAILPOINT: z.string().optional(),
};

const ServiceEnvironment = z.object(serviceEnvironment);

export interface ServiceSettings {
  readonly dataDir: string;
  readonly redisUrl: string;
  /** Undefined: SQLite in the data directory. */
  readonly databaseUrl: string | undefined;
  readonly keySecret: string;
  /** Undefined: no credentials can be kept or used; never so in production. */
  readonly secretsKey: string | undefined;
  readonly graceMs: number;
  readonly logLevel: string;
  readonly prettyLog: boolean;
  /** Empty but under NODE_ENV=test. */
  readonly failpoints: string;
}

/** @throws ConfigError when what only production needs is missing there */
export function toServiceSettings(given: z.output<typeof ServiceEnvironment>): ServiceSettings {
  if (given.NODE_ENV === 'production' && given.SECRETS_KEY === undefined) throw new ConfigError(['SECRETS_KEY: is required in production']);
  return {
    dataDir: resolve(given.DATA_DIR),
    redisUrl: given.REDIS_URL,
    databaseUrl: given.DATABASE_URL,
    keySecret: given.KEY_SECRET,
    secretsKey: given.SECRETS_KEY,
    graceMs: given.SHUTDOWN_GRACE_S * 1000,
    logLevel: given.LOG_LEVEL,
    prettyLog: given.LOG_PRETTY ?? process.stdout.isTTY,
    failpoints: given.NODE_ENV === 'test' ? (given.FAILPOINT ?? '') : '',
  };
}
