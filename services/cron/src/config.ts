import { z } from 'zod';
import { parseConfig, serviceEnvironment, toServiceSettings, type ServiceSettings } from '@concierge/runtime';

const Environment = z.object({
  ...serviceEnvironment,
  METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional(),
  METRICS_HOST: z.string().default('127.0.0.1'),
});

export interface Config extends ServiceSettings {
  /** Where Prometheus reads the service's figures; undefined: nowhere. */
  readonly metrics: { readonly port: number; readonly host: string } | undefined;
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = parseConfig(Environment, env);
  const metrics = given.METRICS_PORT === undefined ? undefined : { port: given.METRICS_PORT, host: given.METRICS_HOST };
  return { ...toServiceSettings(given), metrics };
}
