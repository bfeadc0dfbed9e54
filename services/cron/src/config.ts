import {
  metricsEnvironment,
  parseConfig,
  serviceChecks,
  serviceEnvironment,
  toMetricsAddress,
  toServiceSettings,
} from '@concierge/runtime/config';
import { z } from 'zod';

/** It works through schedules and leftovers, a few at a time. */
const DATABASE_POOL = 5;

const Settings = z
  .object({ ...serviceEnvironment, ...metricsEnvironment })
  .transform((given) => ({ ...toServiceSettings(given, { databasePool: DATABASE_POOL }), metrics: toMetricsAddress(given) }));

export type Config = Readonly<z.infer<typeof Settings>>;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return parseConfig(Settings, env, serviceChecks);
}
