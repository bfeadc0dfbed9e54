import { randomBytes } from 'node:crypto';
import { it } from '@jest/globals';
import { TurnView } from '@concierge/contract';
import {
  eventually,
  RedisCluster,
  startPostgres,
  startScriptedSystem,
  type ScriptedModel,
  type ScriptedSystem,
  type ScriptedModelOptions,
  type System,
  type SystemOptions,
  type TenantKeys,
} from '@concierge/testing';
import { z } from 'zod';
import { NetworkDisk } from '../chaos/disk/network-disk.ts';
import { Client } from './client.ts';

/** No master of it dies: one that a busy machine keeps silent for seconds must not lose its place. */
const NODE_TIMEOUT_MS = 15_000;

type Stores = Pick<SystemOptions, 'databaseUrl' | 'replicatedRedis' | 'dataDir' | 'logsFolder' | 'envFor'>;

/**
 * Which index, which Redis and which disk the run is against: set per jest project, so that every case runs on each.
 * The stack closes what is started for them.
 */
async function startStores(stack: AsyncDisposableStack): Promise<Stores> {
  const isOn = (store: 'database' | 'redis' | 'disk', kind: 'postgres' | 'cluster' | 'network'): boolean =>
    Reflect.get(globalThis, store) === kind;
  return {
    ...(isOn('database', 'postgres') && { databaseUrl: stack.use(await startPostgres()).url }),
    ...(isOn('redis', 'cluster') && { replicatedRedis: stack.use(await RedisCluster.start({ nodeTimeoutMs: NODE_TIMEOUT_MS })) }),
    ...(isOn('disk', 'network') && (await mountDisk(stack))),
  };
}

/** Services with an odd number have the data folder from another machine's mount. */
async function mountDisk(stack: AsyncDisposableStack): Promise<Stores> {
  const disk = stack.use(await NetworkDisk.mount());
  return { dataDir: disk.dataDirOn(0), logsFolder: disk.logsFolder, envFor: (name) => disk.buildEnvironment(name) };
}

/** The system as it ships, over real processes, with a scripted model: what every contract case talks to. */
export class ContractSystem implements AsyncDisposable {
  readonly system: System;
  readonly model: ScriptedModel;
  readonly #stack: AsyncDisposableStack;

  private constructor({ system, model }: ScriptedSystem, stack: AsyncDisposableStack) {
    this.system = system;
    this.model = model;
    this.#stack = stack;
  }

  static async start(options: Partial<SystemOptions> = {}, script: ScriptedModelOptions = {}): Promise<ContractSystem> {
    await using stack = new AsyncDisposableStack();
    const stores = await startStores(stack);
    return new ContractSystem(await startScriptedSystem(stack, { ...stores, ...options, script }), stack.move());
  }

  /** Creates a tenant for one case, so that cases do not meet. */
  async tenant(plan: 'preview' | 'standard' = 'standard'): Promise<Tenant> {
    const keys = await this.system.createTenant(`t-${randomBytes(6).toString('hex')}`, plan);
    return { ...keys, as: (key, gateway = 0) => new Client(this.system.gatewayUrls[gateway] ?? '', keys[key]) };
  }

  /** Returns a client without a key, or with one that is not a tenant's. */
  client(key: string | null = null): Client {
    return new Client(this.system.url, key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export interface Tenant extends TenantKeys {
  as(key: 'admin' | 'cs' | 'read', gateway?: number): Client;
}

/**
 * Resolves once lists have so many turns that have ended, with their sessions and what they used: the end of a turn
 * waits for the index for two seconds, and no longer.
 */
export async function untilListed(tenant: Tenant, count: number): Promise<void> {
  await eventually(async () => {
    const turns = z.array(TurnView).parse((await tenant.as('read').get('/api/turns?limit=100')).json());
    return turns.filter(({ endedAt }) => endedAt !== null).length >= count;
  });
}

/** One case. `lines` are the ids of the specification's lines that it shows to be true (spec-lines.ts). */
export function promise(lines: readonly string[], sentence: string, check: () => Promise<void>): void {
  // eslint-disable-next-line jest/expect-expect, jest/valid-title -- the case brings its own assertions and sentence
  it(`[${lines.join(' ')}] ${sentence}`, check);
}
