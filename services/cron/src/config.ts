import { metricsEnvironment, parseConfig, serviceEnvironment, toMetricsAddress, toServiceSettings } from '@concierge/runtime';
import { z } from 'zod';

const Settings = z
  .object({ ...serviceEnvironment, ...metricsEnvironment })
  .transform((given) => ({ ...toServiceSettings(given), metrics: toMetricsAddress(given) }));

export type Config = Readonly<z.infer<typeof Settings>>;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return parseConfig(Settings, env);
}
