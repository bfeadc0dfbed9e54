import { isAbsolute, join, resolve } from 'node:path';
import { z } from 'zod';

/** A service was started with values it cannot use. `problems` holds one line for every one of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`bad configuration:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * Parses the environment of one service. An empty variable counts as unset, as compose files write it.
 * @throws ConfigError listing every bad value at once
 */
export function parseConfig<Schema extends z.ZodType>(schema: Schema, env: NodeJS.ProcessEnv): z.output<Schema> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
}

/*
 * The variables that several processes read (contract §1), each defined once. The tables are spread into a service's
 * own schema, whose `transform` turns them into settings: a service's `Config` is the output type of its schema.
 */

/** Variables of every process. */
export const processEnvironment = {
  SHUTDOWN_GRACE_S: z.coerce.number().nonnegative().max(3600).default(25),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  LOG_PRETTY: z.stringbool().optional(),
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

const secret = z.string().min(32, 'must have at least 32 characters');

/** Variables of processes that work on tenants' files. */
export const dataEnvironment = {
  DATA_DIR: z
    .string()
    .default('./data')
    .transform((path) => resolve(path)),
  REDIS_URL: z.string().regex(/^(?:rediss?:\/\/|unix:\/)/u, 'must be a redis:// address or unix:/path'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//u, 'must be a postgres:// address')
    .optional(),
  KEY_SECRET: secret,
  SECRETS_KEY: secret.optional(),
};

/** Variables of a service that works on tenants' files. */
export const serviceEnvironment = {
  ...processEnvironment,
  ...dataEnvironment,
  NODE_ENV: z.string().optional(),
  FAILPOINT: z.string().optional(),
};

type ServiceVariables = z.output<z.ZodObject<typeof serviceEnvironment>>;
export type ServiceSettings = ReturnType<typeof toServiceSettings>;

/** @throws ConfigError when what only production needs is missing there */
export function toServiceSettings(given: ServiceVariables) {
  if (given.NODE_ENV === 'production' && given.SECRETS_KEY === undefined) throw new ConfigError(['SECRETS_KEY: is required in production']);
  return {
    ...toProcessSettings(given),
    dataDir: given.DATA_DIR,
    redisUrl: given.REDIS_URL,
    /** Undefined: SQLite in the data directory. */
    databaseUrl: given.DATABASE_URL,
    keySecret: given.KEY_SECRET,
    /** Undefined: no credentials can be kept or used; never so in production. */
    secretsKey: given.SECRETS_KEY,
    /** Empty but under NODE_ENV=test. */
    failpoints: given.NODE_ENV === 'test' ? (given.FAILPOINT ?? '') : '',
  };
}

/** Variables of services with metrics and no other HTTP server. */
export const metricsEnvironment = {
  METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
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
