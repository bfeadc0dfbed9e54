import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort, ServiceProcess, TestRedis, type TenantKeys } from '@concierge/testing';
import type { Target } from './rig.ts';

/**
 * What one would build first: one BullMQ job per turn with its defaults, the session file read, changed and written, no
 * inbox, no lanes, no leases. It has the same HTTP API and leaves the same files, so that the same auditor can be shown
 * to find what it does wrong.
 */
export class NaiveSystem implements Target {
  readonly dataDir: string;
  readonly redis: TestRedis;
  readonly gateways: ServiceProcess[] = [];
  readonly workers: ServiceProcess[] = [];
  readonly gatewayUrls: string[] = [];

  private constructor(dataDir: string, redis: TestRedis) {
    this.dataDir = dataDir;
    this.redis = redis;
  }

  static async start(modelUrl: string, { gateways = 2, workers = 2 } = {}): Promise<NaiveSystem> {
    const system = new NaiveSystem(await mkdtemp(join(tmpdir(), 'concierge-naive-')), await TestRedis.start());
    await mkdir(join(system.dataDir, 'logs'));
    for (let index = 0; index < gateways; index += 1) await system.#addGateway(modelUrl, index);
    for (let index = 0; index < workers; index += 1) system.workers.push(system.#service('worker', index, { MODEL_URL: modelUrl }));
    for (const service of system.services) service.start();
    for (const url of system.gatewayUrls) await eventually(async () => (await fetch(url)).ok, { timeoutMs: 30_000, everyMs: 50 });
    return system;
  }

  get logsFolder(): string {
    return join(this.dataDir, 'logs');
  }

  get services(): ServiceProcess[] {
    return [...this.gateways, ...this.workers];
  }

  /** A key is the tenant's name: nothing here is about keys. */
  async createTenant(tenantId: string): Promise<TenantKeys> {
    await mkdir(join(this.dataDir, 'tenants', tenantId), { recursive: true });
    return { tenantId, admin: tenantId, cs: tenantId, read: tenantId };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.services.map(async (service) => await service.kill()));
    await this.redis[Symbol.asyncDispose]();
    await rm(this.dataDir, { recursive: true, force: true, maxRetries: 5 });
  }

  async #addGateway(modelUrl: string, index: number): Promise<void> {
    const port = await freePort();
    this.gatewayUrls.push(`http://127.0.0.1:${String(port)}`);
    this.gateways.push(this.#service('gateway', index, { MODEL_URL: modelUrl, GATEWAY_PORT: String(port) }));
  }

  #service(kind: 'gateway' | 'worker', index: number, env: Record<string, string>): ServiceProcess {
    const name = `${kind}-${String(index)}`;
    return new ServiceProcess({
      name,
      entry: `packages/acceptance/chaos/naive/${kind}-main.ts`,
      env: { DATA_DIR: this.dataDir, REDIS_SOCKET: join(this.redis.folder, 'redis.sock'), ...env },
      logFile: join(this.dataDir, 'logs', `${name}.log`),
    });
  }
}
