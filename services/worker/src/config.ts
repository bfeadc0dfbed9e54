import { join } from 'node:path';
import { providerEnvironment, toProviderSettings, type ProviderSettings } from '@concierge/channel';
import {
  demoModelEnvironment,
  mayUseDemoModel,
  parseConfig,
  serviceEnvironment,
  toServiceSettings,
  type ServiceSettings,
} from '@concierge/runtime';
import { outboundAllow } from '@concierge/web';
import { z } from 'zod';
import { sandboxEnvironment, toSandboxSettings, type SandboxSettings } from './sandbox-settings.ts';
import { missingForWebSearch, toWebSearchSettings, webSearchEnvironment, type WebSearchSettings } from './web-search-settings.ts';

const count = z.coerce.number().int().positive();

const shares = { WORKER_CONCURRENCY: count.max(10_000).default(32), TENANT_SHARE: count.optional() };

const Environment = z
  .object({
    ...serviceEnvironment,
    ...providerEnvironment,
    ...demoModelEnvironment,
    ...sandboxEnvironment,
    ...webSearchEnvironment,
    ...shares,
    DELIVERY_CONCURRENCY: count.max(1000).default(16),
    OUTBOUND_ALLOW: outboundAllow,
    PROVIDERS_FILE: z.string().optional(),
    METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
    METRICS_HOST: z.string().default('127.0.0.1'),
  })
  .refine((given) => (given.TENANT_SHARE ?? 1) <= given.WORKER_CONCURRENCY, {
    path: ['TENANT_SHARE'],
    message: 'must not be more than WORKER_CONCURRENCY',
    when: ({ value }) => z.object(shares).safeParse(value).success,
  })
  .superRefine(
    (given, context) => {
      for (const [name, message] of missingForWebSearch(given)) context.addIssue({ code: 'custom', path: [name], message });
    },
    { when: ({ value }) => z.object(webSearchEnvironment).safeParse(value).success },
  );

export interface Config extends ServiceSettings, ProviderSettings {
  readonly providersFile: string;
  /** The built-in demo model answers where the file names no usable key. */
  readonly mayUseDemoModel: boolean;
  /** Turns this worker runs at once. */
  readonly concurrency: number;
  /** Of these, of one tenant. */
  readonly tenantShare: number;
  /** Conversations on chat apps into which this worker sends at once. */
  readonly deliveryConcurrency: number;
  readonly sandbox: SandboxSettings;
  /** `host:port`s that URLs of tenants may lead to although they are not public. */
  readonly outboundAllow: readonly string[];
  /** Undefined: none is configured. */
  readonly webSearch: WebSearchSettings | undefined;
  /** Where Prometheus reads the worker's figures; undefined: nowhere. */
  readonly metrics: { readonly port: number; readonly host: string } | undefined;
  /** Keys of providers are named in the providers file and looked up here. */
  environment(name: string): string | undefined;
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = parseConfig(Environment, env);
  const settings = toServiceSettings(given);
  return {
    ...settings,
    ...toProviderSettings(given),
    providersFile: given.PROVIDERS_FILE ?? join(settings.dataDir, 'providers.json'),
    mayUseDemoModel: mayUseDemoModel(given),
    concurrency: given.WORKER_CONCURRENCY,
    deliveryConcurrency: given.DELIVERY_CONCURRENCY,
    tenantShare: given.TENANT_SHARE ?? Math.ceil(given.WORKER_CONCURRENCY / 2),
    sandbox: toSandboxSettings(given),
    outboundAllow: given.OUTBOUND_ALLOW,
    webSearch: toWebSearchSettings(given),
    metrics: given.METRICS_PORT === undefined ? undefined : { port: given.METRICS_PORT, host: given.METRICS_HOST },
    environment: (name) => env[name],
  };
}
