import { z } from 'zod';
import { parseConfig, serviceEnvironment, toServiceSettings, type ServiceSettings } from '@concierge/runtime';

const Environment = z.object(serviceEnvironment);

export type Config = ServiceSettings;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return toServiceSettings(parseConfig(Environment, env));
}
