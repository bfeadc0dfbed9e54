import { join } from 'node:path';
import { providerEnvironment, toProviderSettings, type ProviderSettings } from '@concierge/channel';
import { parseConfig, serviceEnvironment, toServiceSettings, type ServiceSettings } from '@concierge/runtime';
import { outboundAllow } from '@concierge/web';
import { z } from 'zod';

const count = z.coerce.number().int().positive();

const Environment = z.object({
  ...serviceEnvironment,
  ...providerEnvironment,
  PROVIDERS_FILE: z.string().optional(),
  GATEWAY_PORT: z.coerce.number().int().min(0).max(65_535).default(8000),
  GATEWAY_HOST: z.string().optional(),
  OPS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
  GATEWAY_MAX_CONNECTIONS: count.default(20_000),
  GATEWAY_MAX_STREAMS_PER_KEY: count.default(10_000),
  OUTBOUND_ALLOW: outboundAllow,
  GATEWAY_KEEP_ALIVE_S: z.coerce.number().positive().default(75),
  GATEWAY_LEAVE_S: z.coerce.number().nonnegative().max(600).default(0),
  GATEWAY_UNREAD_ANSWER_S: z.coerce.number().positive().default(20),
});

export interface Config extends ServiceSettings, ProviderSettings {
  readonly port: number;
  /** Names the models that settings may name; there need not be one. */
  readonly providersFile: string;
  /** Undefined: every interface. */
  readonly host: string | undefined;
  /** Undefined: operators' pages answer on loopback only. */
  readonly opsToken: string | undefined;
  /** `host:port`s that URLs of tenants may lead to although they are not public. */
  readonly outboundAllow: readonly string[];
  readonly maxConnections: number;
  readonly maxStreamsPerKey: number;
  /** Above the idle time of the load balancer in front, or it reuses a connection that is just being closed. */
  readonly keepAliveMs: number;
  /** After SIGTERM: how long it goes on serving while readiness says no, so that the balancer in front notices. */
  readonly leaveMs: number;
  /** A client that takes nothing of its answer for so long is cut off. */
  readonly unreadAnswerMs: number;
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = parseConfig(Environment, env);
  const settings = toServiceSettings(given);
  return {
    ...settings,
    ...toProviderSettings(given),
    port: given.GATEWAY_PORT,
    providersFile: given.PROVIDERS_FILE ?? join(settings.dataDir, 'providers.json'),
    host: given.GATEWAY_HOST,
    opsToken: given.OPS_TOKEN,
    outboundAllow: given.OUTBOUND_ALLOW,
    maxConnections: given.GATEWAY_MAX_CONNECTIONS,
    maxStreamsPerKey: given.GATEWAY_MAX_STREAMS_PER_KEY,
    keepAliveMs: given.GATEWAY_KEEP_ALIVE_S * 1000,
    leaveMs: given.GATEWAY_LEAVE_S * 1000,
    unreadAnswerMs: given.GATEWAY_UNREAD_ANSWER_S * 1000,
  };
}
