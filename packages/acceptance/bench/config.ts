import { availableParallelism } from 'node:os';
import { parseConfig } from '@concierge/runtime';
import { z } from 'zod';

const PipelineEnvironment = z.object({
  REDIS_SOCKET: z.string(),
  MODEL_PORT: z.coerce.number().int().positive(),
  /** Empty: nothing is stored. */
  SESSIONS_FOLDER: z.string().default(''),
});

export interface PipelineConfig {
  readonly redisSocket: string;
  readonly modelPort: number;
  /** Undefined: the minimal pipeline, which stores nothing. */
  readonly sessionsFolder: string | undefined;
}

/** Reads the configuration of the baseline pipelines' gateway and worker. @throws ConfigError */
export function readPipelineConfig(): PipelineConfig {
  const given = parseConfig(PipelineEnvironment, process.env);
  return {
    redisSocket: given.REDIS_SOCKET,
    modelPort: given.MODEL_PORT,
    sessionsFolder: given.SESSIONS_FOLDER === '' ? undefined : given.SESSIONS_FOLDER,
  };
}

/** Reads where the webhook baseline stores what it receives. @throws ConfigError */
export function readWebhookFloorConfig(): { readonly folder: string } {
  return { folder: parseConfig(z.object({ WEBHOOKS_FOLDER: z.string() }), process.env).WEBHOOKS_FOLDER };
}

const EmbeddingsEnvironment = z.object({
  BENCH_EMBEDDINGS_URL: z.url().optional(),
  BENCH_EMBEDDINGS_MODEL: z.string().min(1).default('text-embedding-3-small'),
  BENCH_EMBEDDINGS_KEY: z.string().min(1).optional(),
});

/** A real embeddings model to measure retrieval with; undefined when none is named. @throws ConfigError */
export function readEmbeddingsConfig(): { readonly url: string; readonly model: string; readonly key: string | undefined } | undefined {
  const given = parseConfig(EmbeddingsEnvironment, process.env);
  if (given.BENCH_EMBEDDINGS_URL === undefined) return undefined;
  return { url: given.BENCH_EMBEDDINGS_URL, model: given.BENCH_EMBEDDINGS_MODEL, key: given.BENCH_EMBEDDINGS_KEY };
}

const count = z.coerce.number().int().positive();
const milliseconds = z.coerce.number().nonnegative();
/** Milliseconds of a turn, as a run that calibrates prints them. */
const Costs = z.object({
  gateway: milliseconds,
  worker: milliseconds,
  redis: milliseconds,
  others: milliseconds,
  sync: milliseconds,
  inside: milliseconds,
  outside: milliseconds,
});
const SimulationEnvironment = z.object({
  BENCH_TENANTS: count.default(100_000),
  BENCH_MESSAGES_PER_HOUR: count.default(1_000_000),
  BENCH_GATEWAYS: count.default(4),
  BENCH_WORKERS: count.default(8),
  BENCH_WORKER_CONCURRENCY: count.default(256),
  BENCH_TENANT_SHARE: count.optional(),
  BENCH_MODEL_S: z.coerce.number().positive().default(5),
  BENCH_SECONDS: count.default(3600),
  BENCH_COSTS: z
    .string()
    .transform((line) => Object.fromEntries(line.split(',').map((one) => one.trim().split(' '))))
    .pipe(Costs)
    .optional(),
});
export interface SimulationConfig {
  readonly tenants: number;
  readonly messagesPerHour: number;
  readonly gateways: number;
  readonly workers: number;
  /** Of each worker. */
  readonly slots: number;
  readonly tenantShare: number | undefined;
  /** What the model takes for a turn, on average. */
  readonly modelS: number;
  /** Simulated time. */
  readonly seconds: number;
  /** Undefined: measured first. Milliseconds. */
  readonly costs: z.infer<typeof Costs> | undefined;
}

/** Reads what is to be simulated. @throws ConfigError */
export function readSimulationConfig(): SimulationConfig {
  const given = parseConfig(SimulationEnvironment, process.env);
  return {
    tenants: given.BENCH_TENANTS,
    messagesPerHour: given.BENCH_MESSAGES_PER_HOUR,
    gateways: given.BENCH_GATEWAYS,
    workers: given.BENCH_WORKERS,
    slots: given.BENCH_WORKER_CONCURRENCY,
    tenantShare: given.BENCH_TENANT_SHARE,
    modelS: given.BENCH_MODEL_S,
    seconds: given.BENCH_SECONDS,
    costs: given.BENCH_COSTS,
  };
}

/** The environment of every bench process, baselines included: the one that `npm start` gives its services. */
export const sharedEnvironment: Readonly<Record<string, string>> = {
  UV_THREADPOOL_SIZE: String(Math.min(32, availableParallelism() * 4)),
  MALLOC_ARENA_MAX: '2',
  ...(process.env['NODE_COMPILE_CACHE'] === undefined ? {} : { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
};

/** The environment this command was started with, for the commands that it starts. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}
