import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { providerEnvironment, toProviderSettings, type ProviderSettings } from '@concierge/channel/provider-environment';
import { demoModelEnvironment, mayUseDemoModel, parseConfig } from '@concierge/runtime';
import { outboundAllow } from '@concierge/web';
import { z } from 'zod';

const Environment = z.object({
  ...providerEnvironment,
  ...demoModelEnvironment,
  DATA_DIR: z.string().default('./data'),
  REDIS_URL: z
    .string()
    .regex(/^(?:rediss?:\/\/|unix:\/)/u, 'must be a redis:// address or unix:/path')
    .optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//u, 'must be a postgres:// address')
    .optional(),
  KEY_SECRET: z.string().min(32, 'must have at least 32 characters').optional(),
  SECRETS_KEY: z.string().min(32, 'must have at least 32 characters').optional(),
  OUTBOUND_ALLOW: outboundAllow,
  PROVIDERS_FILE: z.string().optional(),
  SANDBOX: z.enum(['auto', 'docker', 'bubblewrap', 'off']).default('auto'),
  SANDBOX_IMAGE: z.string().default('concierge-sandbox'),
  SANDBOX_RUNTIME: z.string().optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('warn'),
});

const Secrets = z.looseObject({ KEY_SECRET: z.string().optional(), SECRETS_KEY: z.string().optional() });

export interface SandboxChoice {
  readonly kind: 'auto' | 'docker' | 'bubblewrap' | 'off';
  readonly image: string;
  readonly runtime: string | undefined;
}

export interface Config extends ProviderSettings {
  readonly dataDir: string;
  /** Of the environment, else of the embedded server; undefined when neither is there. */
  readonly redisUrl: string | undefined;
  readonly databaseUrl: string | undefined;
  /** Of the environment, else of DATA_DIR/secrets.json; undefined before the first start. */
  readonly keySecret: string | undefined;
  /** From the same places; without it credentials can be neither kept nor used. */
  readonly secretsKey: string | undefined;
  /** `host:port`s that URLs of tenants may lead to although they are not public. */
  readonly outboundAllow: readonly string[];
  readonly providersFile: string;
  /** The built-in demo model answers where the file names no usable key. */
  readonly mayUseDemoModel: boolean;
  readonly sandbox: SandboxChoice;
  readonly logLevel: string;
  /** For keys that providers.json names by variable. */
  readonly environment: (name: string) => string | undefined;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The same places that the services use: the environment first, then what `npm start` has left in the data folder.
 * @throws ConfigError listing every bad value at once
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = parseConfig(Environment, env);
  const dataDir = resolve(given.DATA_DIR);
  const secrets = Secrets.parse(JSON.parse(readIfThere(join(dataDir, 'secrets.json')) ?? '{}'));
  return {
    ...toProviderSettings(given),
    dataDir,
    redisUrl: given.REDIS_URL ?? readIfThere(join(dataDir, 'redis', 'url'))?.trim(),
    databaseUrl: given.DATABASE_URL,
    keySecret: given.KEY_SECRET ?? secrets.KEY_SECRET,
    secretsKey: given.SECRETS_KEY ?? secrets.SECRETS_KEY,
    outboundAllow: given.OUTBOUND_ALLOW,
    mayUseDemoModel: mayUseDemoModel(given),
    providersFile: given.PROVIDERS_FILE ?? join(dataDir, 'providers.json'),
    sandbox: { kind: given.SANDBOX, image: given.SANDBOX_IMAGE, runtime: given.SANDBOX_RUNTIME },
    logLevel: given.LOG_LEVEL,
    environment: (name) => env[name],
  };
}
