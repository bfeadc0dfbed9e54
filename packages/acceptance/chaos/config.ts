import { z } from 'zod';
import { parseConfig } from '@concierge/runtime';

const ModelEnvironment = z.object({ MODEL_PORT: z.coerce.number().int(), MODEL_LEDGER: z.string() });
const NaiveEnvironment = z.object({
  DATA_DIR: z.string(),
  REDIS_SOCKET: z.string(),
  MODEL_URL: z.url(),
  GATEWAY_PORT: z.coerce.number().int().default(0),
  FAILPOINT: z.string().default(''),
});

/** Reads the configuration of the model server of a chaos run. @throws ConfigError */
export function readModelConfig(): { port: number; ledger: string } {
  const { MODEL_PORT: port, MODEL_LEDGER: ledger } = parseConfig(ModelEnvironment, process.env);
  return { port, ledger };
}

export interface NaiveConfig {
  readonly dataDir: string;
  readonly redisSocket: string;
  readonly modelUrl: string;
  readonly port: number;
  readonly failpoints: string;
}

/** Reads the configuration of the naive gateway and worker. @throws ConfigError */
export function readNaiveConfig(): NaiveConfig {
  const given = parseConfig(NaiveEnvironment, process.env);
  return {
    dataDir: given.DATA_DIR,
    redisSocket: given.REDIS_SOCKET,
    modelUrl: given.MODEL_URL,
    port: given.GATEWAY_PORT,
    failpoints: given.FAILPOINT,
  };
}
