import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { providerEnvironment, toProviderSettings } from '@concierge/channel/provider-environment';
import {
  addPassword,
  ConfigError,
  dataCheck,
  dataEnvironment,
  demoModelEnvironment,
  mayUseDemoModel,
  modelsEnvironment,
  parseConfig,
  processEnvironment,
  readSecret,
  sandboxEnvironment,
  toProvidersFile,
  toSandboxSettings,
  withSlots,
} from '@concierge/runtime/config';
import { outboundAllow } from '@concierge/web/outbound-url';
import { z } from 'zod';

const Secrets = z.looseObject({ KEY_SECRET: z.string().optional(), SECRETS_KEY: z.string().optional() });

/** One command at a time. */
const DATABASE_POOL = 2;

/** What the environment does not contain is looked up where `npm start` has left it in the data folder. */
const Settings = z
  .object({
    ...dataEnvironment,
    ...providerEnvironment,
    ...modelsEnvironment,
    ...demoModelEnvironment,
    ...sandboxEnvironment,
    REDIS_URL: dataEnvironment.REDIS_URL.optional(),
    KEY_SECRET: dataEnvironment.KEY_SECRET.optional(),
    OUTBOUND_ALLOW: outboundAllow,
    LOG_LEVEL: processEnvironment.LOG_LEVEL.default('warn'),
  })
  .transform((given) => {
    const { DATA_DIR: dataDir } = given;
    const redisUrl =
      given.REDIS_URL === undefined
        ? readIfThere(join(dataDir, 'redis', 'url'))?.trim()
        : addPassword(given.REDIS_URL, given.REDIS_PASSWORD);
    const secrets = readSecrets(join(dataDir, 'secrets.json'));
    return {
      ...toProviderSettings(given),
      dataDir,
      /** Undefined when no server was ever started here. */
      redisUrl: redisUrl && withSlots(redisUrl, given.REDIS_SLOTS),
      databaseUrl: given.DATABASE_URL === undefined ? undefined : addPassword(given.DATABASE_URL, given.DATABASE_PASSWORD),
      databasePool: given.DATABASE_POOL ?? DATABASE_POOL,
      /** Undefined before the first start. */
      keySecret: given.KEY_SECRET ?? secrets.KEY_SECRET,
      /** Without it credentials can be neither kept nor used. */
      secretsKey: given.SECRETS_KEY ?? secrets.SECRETS_KEY,
      /** `host:port`s that URLs of tenants may lead to although they are not public. */
      outboundAllow: given.OUTBOUND_ALLOW,
      /** The built-in demo model answers where the file names no usable key. */
      mayUseDemoModel: mayUseDemoModel(given),
      providersFile: toProvidersFile(given),
      sandbox: toSandboxSettings(given),
      logLevel: given.LOG_LEVEL,
    };
  });

export interface Config extends Readonly<z.infer<typeof Settings>> {
  /** For keys that providers.json names by variable. */
  readonly environment: (name: string) => string | undefined;
}

/** @throws ConfigError without the parser's message, which quotes what it stopped at */
function readSecrets(path: string): z.infer<typeof Secrets> {
  const text = readIfThere(path) ?? '{}';
  try {
    return Secrets.parse(JSON.parse(text));
  } catch {
    throw new ConfigError([`${path}: must be a JSON object with texts`]);
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return { ...parseConfig(Settings, env, [dataCheck]), environment: (name) => readSecret(env, name) };
}
