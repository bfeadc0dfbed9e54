import { System, TestRedis, temporaryDirectory, type SystemOptions } from '@concierge/testing';
import { BenchProcess } from './bench-process.ts';
import { sharedEnvironment } from './config.ts';
import type { LoadSpec } from './load/load-spec.ts';
import type { BenchModel } from './model.ts';
import { findRedisPid } from './process-figures.ts';

/** Something that answers turns. */
export interface Contestant extends AsyncDisposable {
  readonly name: string;
  readonly target: Pick<LoadSpec, 'ports' | 'kind' | 'apiKeys'>;
  /** Processes whose time and memory are counted as its own. */
  readonly pids: readonly number[];
}

/** Turns in flight at most: above every load, so that the share of a tenant caps nothing. */
export const WORKER_CONCURRENCY = 256;
const TENANTS = 8;

/** The model server, asked directly: the first floor. */
export function direct(model: BenchModel): Contestant {
  const target = { ports: [model.port], kind: 'model', apiKeys: [] } as const;
  return { name: 'model directly', target, pids: [], [Symbol.asyncDispose]: async () => Promise.resolve() };
}

/**
 * One gateway, one worker, one Redis, and nothing promised; with `durable` one session file read and written per turn.
 */
export async function startPipeline(model: BenchModel, { durable }: { readonly durable: boolean }): Promise<Contestant> {
  const parts = new AsyncDisposableStack();
  const redis = parts.use(await TestRedis.start({ syncs: true }));
  const folder = parts.use(await temporaryDirectory());
  const env = {
    ...sharedEnvironment,
    REDIS_SOCKET: redis.url.slice('unix:'.length),
    MODEL_PORT: String(model.port),
    SESSIONS_FOLDER: durable ? folder.path : '',
  };
  const gateway = parts.use(await BenchProcess.start('pipeline/gateway-main.ts', env));
  const worker = parts.use(await BenchProcess.start('pipeline/worker-main.ts', env));
  return {
    name: durable ? 'durable pipeline' : 'minimal pipeline',
    target: { ports: [gateway.port], kind: 'chat', apiKeys: [''] },
    pids: [gateway.pid, worker.pid, await findRedisPid(redis)],
    [Symbol.asyncDispose]: async () => parts.disposeAsync(),
  };
}

export interface Product extends Contestant {
  readonly system: System;
  readonly gatewayPid: number;
}

/** The system as it ships, all guarantees on, with so many tenants that no share is in the way. */
export async function startProduct(model: BenchModel, options: Partial<SystemOptions> = {}): Promise<Product> {
  const env = { ...sharedEnvironment, NODE_ENV: 'production', WORKER_CONCURRENCY: String(WORKER_CONCURRENCY), ...options.env };
  const system = await System.start({ modelUrl: model.url, redisSyncs: true, ...options, env });
  const apiKeys: string[] = [];
  for (let tenant = 0; tenant < TENANTS; tenant += 1) apiKeys.push((await system.createTenant(`bench-${String(tenant)}`)).cs);
  const servicePids = [...system.gateways, ...system.workers].map(({ pid = 0 }) => pid);
  return {
    name: 'product',
    system,
    gatewayPid: servicePids[0] ?? 0,
    target: { ports: system.gatewayUrls.map((url) => Number(new URL(url).port)), kind: 'chat', apiKeys },
    pids: [...servicePids, await findRedisPid(system.redis)],
    [Symbol.asyncDispose]: async () => system[Symbol.asyncDispose](),
  };
}
