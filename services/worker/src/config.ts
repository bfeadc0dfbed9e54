import { providerEnvironment, toProviderSettings } from '@concierge/channel/provider-environment';
import {
  checkTogether,
  demoModelEnvironment,
  mayUseDemoModel,
  metricsEnvironment,
  modelsEnvironment,
  parseConfig,
  readSecret,
  sandboxEnvironment,
  serviceChecks,
  serviceEnvironment,
  spansCheck,
  spansEnvironment,
  toMetricsAddress,
  toProvidersFile,
  toSandboxSettings,
  toServiceSettings,
  toSpanSettings,
  wholeNumber,
} from '@concierge/runtime/config';
import { outboundAllow } from '@concierge/web/outbound-url';
import { z } from 'zod';

/** Spread into the worker's schema. */
const webSearchEnvironment = {
  WEB_SEARCH_PROVIDER: z.enum(['brave', 'tavily', 'searxng']).optional(),
  WEB_SEARCH_URL: z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' }).optional(),
  WEB_SEARCH_KEY: z.string().optional(),
};

type Given = z.output<z.ZodObject<typeof webSearchEnvironment>>;

/** The variables that are still missing. */
function missingForWebSearch({ WEB_SEARCH_PROVIDER, WEB_SEARCH_URL, WEB_SEARCH_KEY }: Given): [name: keyof Given, message: string][] {
  switch (WEB_SEARCH_PROVIDER) {
    case undefined: {
      const isAsked = WEB_SEARCH_URL !== undefined || WEB_SEARCH_KEY !== undefined;
      return isAsked ? [['WEB_SEARCH_PROVIDER', 'must be brave, tavily or searxng when one of the others is set']] : [];
    }
    case 'searxng': {
      return WEB_SEARCH_URL === undefined ? [['WEB_SEARCH_URL', 'is required: SearXNG has no address of its own']] : [];
    }
    case 'brave':
    case 'tavily': {
      return WEB_SEARCH_KEY === undefined ? [['WEB_SEARCH_KEY', `is required for ${WEB_SEARCH_PROVIDER}`]] : [];
    }
  }
}

/** Undefined: the agents have no web search, and the tool answers that. `url` undefined: the provider's own. */
function toWebSearchSettings({ WEB_SEARCH_PROVIDER: provider, WEB_SEARCH_URL: url, WEB_SEARCH_KEY: key }: Given) {
  return provider === undefined ? undefined : { provider, url, key };
}

const CONCURRENCY_MAX = 10_000;
const shares = {
  WORKER_CONCURRENCY: wholeNumber({ min: 1, max: CONCURRENCY_MAX }).default(32),
  TENANT_SHARE: wholeNumber({ min: 1, max: CONCURRENCY_MAX }).optional(),
};

/** Turns use the index for a moment at their beginning and end: 32 of them hardly ever need more at once. */
const DATABASE_POOL = 10;

const Settings = z
  .object({
    ...serviceEnvironment,
    ...providerEnvironment,
    ...modelsEnvironment,
    ...demoModelEnvironment,
    ...sandboxEnvironment,
    ...webSearchEnvironment,
    ...metricsEnvironment,
    ...spansEnvironment,
    ...shares,
    DELIVERY_CONCURRENCY: wholeNumber({ min: 1, max: 1000 }).default(16),
    OUTBOUND_ALLOW: outboundAllow,
  })
  .transform((given) => ({
    ...toServiceSettings(given, { databasePool: DATABASE_POOL }),
    ...toProviderSettings(given),
    providersFile: toProvidersFile(given),
    /** The built-in demo model answers where the file names no usable key. */
    mayUseDemoModel: mayUseDemoModel(given),
    /** Turns this worker runs at once. */
    concurrency: given.WORKER_CONCURRENCY,
    /** How many of these one tenant may have. */
    tenantShare: given.TENANT_SHARE ?? Math.ceil(given.WORKER_CONCURRENCY / 2),
    /** Conversations on channels into which this worker sends at once. */
    deliveryConcurrency: given.DELIVERY_CONCURRENCY,
    sandbox: toSandboxSettings(given),
    /** `host:port`s that URLs of tenants may lead to although they are not public. */
    outboundAllow: given.OUTBOUND_ALLOW,
    webSearch: toWebSearchSettings(given),
    metrics: toMetricsAddress(given),
    spans: toSpanSettings(given),
  }));

const checks = [
  checkTogether(shares, ({ TENANT_SHARE = 1, WORKER_CONCURRENCY }) =>
    TENANT_SHARE > WORKER_CONCURRENCY ? [['TENANT_SHARE', 'must not be more than WORKER_CONCURRENCY']] : [],
  ),
  checkTogether(webSearchEnvironment, missingForWebSearch),
  spansCheck,
  ...serviceChecks,
];

export interface Config extends Readonly<z.infer<typeof Settings>> {
  /** Keys of providers are named in the providers file and looked up here. @throws ConfigError */
  readonly environment: (name: string) => string | undefined;
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return { ...parseConfig(Settings, env, checks), environment: (name) => readSecret(env, name) };
}
