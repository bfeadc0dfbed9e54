import { isAbsolute, join, resolve } from 'node:path';
import { z } from 'zod';
import { checkTogether, port, seconds, wholeNumber } from './environment.ts';
import { findAddressProblem, withSlots } from './redis-address.ts';

// The rest of what a service's config.ts needs, without the weight of the package's clients.
export { spansCheck, spansEnvironment, toSpanSettings } from './spans/span-settings.ts';
export { withSlots } from './redis-address.ts';
export { checkTogether, ConfigError, parseConfig, port, readSecret, seconds, wholeNumber } from './environment.ts';

/*
 * The variables that several processes read (contract §1), each defined once. The tables are spread into a service's
 * own schema, whose `transform` turns them into settings: a service's `Config` is the output type of its schema.
 */

/** Variables of every process. */
export const processEnvironment = {
  SHUTDOWN_GRACE_S: seconds({ max: 3600 }).default(25),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  LOG_PRETTY: z.stringbool('must be 1 or 0').optional(),
};

type ProcessVariables = z.output<z.ZodObject<typeof processEnvironment>>;
export type ProcessSettings = ReturnType<typeof toProcessSettings>;

export function toProcessSettings(given: ProcessVariables) {
  return {
    graceMs: given.SHUTDOWN_GRACE_S * 1000,
    logLevel: given.LOG_LEVEL,
    prettyLog: given.LOG_PRETTY ?? process.stdout.isTTY,
  };
}

const secretError = 'must have at least 32 characters';
/** What keys are derived from. */
export const secret = z.string(secretError).min(32, secretError);
const redisError = 'must be a redis:// or rediss:// address, or unix:/path';
/** More than any server allows one process. */
const POOL_MAX = 1000;
/** Each is a connection more for each connection of a process. */
const SLOTS_MAX = 64;

/** Variables of processes that work on tenants' files. */
export const dataEnvironment = {
  DATA_DIR: z
    .string()
    .default('./data')
    .transform((path) => resolve(path)),
  REDIS_URL: z.string(redisError).check((given) => {
    const problem = findAddressProblem(given.value);
    if (problem !== undefined) given.issues.push({ code: 'custom', input: given.value, message: problem });
  }),
  /** Of REDIS_URL, which then has none in it. */
  REDIS_PASSWORD: z.string().optional(),
  /** Over so many slots of Redis tenants are spread. */
  REDIS_SLOTS: wholeNumber({ min: 1, max: SLOTS_MAX }).default(1),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//u, 'must be a postgres:// address')
    .optional(),
  /** Of DATABASE_URL. */
  DATABASE_PASSWORD: z.string().optional(),
  DATABASE_POOL: wholeNumber({ min: 1, max: POOL_MAX }).optional(),
  KEY_SECRET: secret,
  SECRETS_KEY: secret.optional(),
};

const addressVariables = {
  REDIS_URL: z.string().optional(),
  REDIS_PASSWORD: z.string().optional(),
  DATABASE_URL: z.string().optional(),
  DATABASE_PASSWORD: z.string().optional(),
};
type Addresses = z.output<z.ZodObject<typeof addressVariables>>;

/** For a schema with `dataEnvironment`. */
export const dataCheck = checkTogether(addressVariables, findWrongPasswords);

function* findWrongPasswords(given: Addresses): Iterable<[string, string]> {
  const { REDIS_URL, REDIS_PASSWORD, DATABASE_URL, DATABASE_PASSWORD } = given;
  if (REDIS_PASSWORD !== undefined && REDIS_URL !== undefined) {
    if (hasPassword(REDIS_URL)) yield ['REDIS_PASSWORD', 'cannot be set beside a password in REDIS_URL; leave one of them out'];
    else if (REDIS_URL.startsWith('unix:')) yield ['REDIS_PASSWORD', 'cannot be set beside a unix: address in REDIS_URL'];
  }
  if (DATABASE_PASSWORD !== undefined && DATABASE_URL !== undefined && hasPassword(DATABASE_URL)) {
    yield ['DATABASE_PASSWORD', 'cannot be set beside a password in DATABASE_URL; leave one of them out'];
  }
}

function hasPassword(url: string): boolean {
  return /^[a-z+]+:\/\/[^:@/?#]*:[^@/?#]*@/u.test(url);
}

/** The address with the password that stands beside it. */
export function addPassword(url: string, password: string | undefined): string {
  if (password === undefined) return url;
  return url.replace(
    /^(?<scheme>[a-z+]+:\/\/)(?:(?<user>[^:@/?#]*)@)?/u,
    (_start, scheme: string, user = '') => `${scheme}${String(user)}:${encodeURIComponent(password)}@`,
  );
}

/** Variables of a service that works on tenants' files. */
export const serviceEnvironment = {
  ...processEnvironment,
  ...dataEnvironment,
  NODE_ENV: z.string().optional(),
  FAILPOINT: z.string().optional(),
};

const productionVariables = { NODE_ENV: serviceEnvironment.NODE_ENV, SECRETS_KEY: serviceEnvironment.SECRETS_KEY };

const productionCheck = checkTogether(productionVariables, ({ NODE_ENV, SECRETS_KEY }) =>
  NODE_ENV === 'production' && SECRETS_KEY === undefined ? [['SECRETS_KEY', 'is required in production']] : [],
);
/** For a schema with `serviceEnvironment`. */
export const serviceChecks = [dataCheck, productionCheck] as const;

type ServiceVariables = z.output<z.ZodObject<typeof serviceEnvironment>>;
export type ServiceSettings = ReturnType<typeof toServiceSettings>;

/** `databasePool`: the default of DATABASE_POOL. */
export function toServiceSettings(given: ServiceVariables, { databasePool }: { readonly databasePool: number }) {
  return {
    ...toProcessSettings(given),
    dataDir: given.DATA_DIR,
    redisUrl: withSlots(addPassword(given.REDIS_URL, given.REDIS_PASSWORD), given.REDIS_SLOTS),
    /** Undefined: SQLite in the data directory. */
    databaseUrl: given.DATABASE_URL === undefined ? undefined : addPassword(given.DATABASE_URL, given.DATABASE_PASSWORD),
    /** Connections to PostgreSQL that this process opens at most. */
    databasePool: given.DATABASE_POOL ?? databasePool,
    keySecret: given.KEY_SECRET,
    /** Undefined: no credentials can be kept or used; never so in production. */
    secretsKey: given.SECRETS_KEY,
    /** Empty but under NODE_ENV=test. */
    failpoints: given.NODE_ENV === 'test' ? (given.FAILPOINT ?? '') : '',
  };
}

/** Variables of services with metrics and no other HTTP server. */
export const metricsEnvironment = {
  METRICS_PORT: port.optional(),
  METRICS_HOST: z.string().default('127.0.0.1'),
};

/** Where Prometheus reads the metrics; undefined: nowhere. */
export function toMetricsAddress({ METRICS_PORT: port, METRICS_HOST: host }: z.output<z.ZodObject<typeof metricsEnvironment>>) {
  return port === undefined ? undefined : { port, host };
}

/** Variables of processes that need the names of the models. */
export const modelsEnvironment = { DATA_DIR: dataEnvironment.DATA_DIR, PROVIDERS_FILE: z.string().optional() };

export function toProvidersFile({ DATA_DIR, PROVIDERS_FILE }: z.output<z.ZodObject<typeof modelsEnvironment>>): string {
  return PROVIDERS_FILE ?? join(DATA_DIR, 'providers.json');
}

/** Variables of processes that choose the model provider. */
export const demoModelEnvironment = {
  NODE_ENV: z.string().optional(),
  /** The built-in demo model may answer in production, too. */
  DEMO_MODEL: z.stringbool('must be 1 or 0').default(false),
};

/**
 * Whether the demo model answers when no provider has a usable key: always outside of production, and in production
 * only with DEMO_MODEL=1.
 */
export function mayUseDemoModel({ NODE_ENV, DEMO_MODEL }: z.output<z.ZodObject<typeof demoModelEnvironment>>): boolean {
  return DEMO_MODEL || NODE_ENV !== 'production';
}

/** Variables of processes that run commands or check whether commands can run. */
export const sandboxEnvironment = {
  SANDBOX: z.enum(['auto', 'docker', 'bubblewrap', 'off']).default('auto'),
  SANDBOX_RUNTIME: z
    .string()
    .regex(/^[\w.-]+$/u, 'must be the name of a runtime of the Docker engine, such as runsc')
    .optional(),
  SANDBOX_IMAGE: z.string().regex(/^\S+$/u, 'must be the name of an image').default('concierge-sandbox'),
  HOST_DATA_DIR: z.string().refine(isAbsolute, 'must be an absolute path').optional(),
};

export type SandboxSettings = ReturnType<typeof toSandboxSettings>;

export function toSandboxSettings(given: z.output<z.ZodObject<typeof sandboxEnvironment>>) {
  // A runtime is named for its walls: bubblewrap, which has none of them, is not put in its place.
  const kind: (typeof given)['SANDBOX'] = given.SANDBOX === 'auto' && given.SANDBOX_RUNTIME !== undefined ? 'docker' : given.SANDBOX;
  return {
    kind,
    image: given.SANDBOX_IMAGE,
    /** The runtime of the Docker engine; undefined: the engine's default. */
    runtime: given.SANDBOX_RUNTIME,
    /** The path of this process's data directory on the engine's machine; undefined: the same path. */
    hostDataDir: given.HOST_DATA_DIR,
  };
}
