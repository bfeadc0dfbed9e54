import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './eventually.ts';

/** A real redis-server of a test's own, on a Unix socket in a temporary folder, append-only as in production. */
export class TestRedis implements AsyncDisposable {
  readonly folder: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async start(): Promise<TestRedis> {
    const redis = new TestRedis(await mkdtemp(join(tmpdir(), 'concierge-redis-')));
    await redis.start();
    return redis;
  }

  get url(): string {
    return `unix:${join(this.folder, 'redis.sock')}`;
  }

  /** Starts it (again) over the same folder: what its append-only file holds comes back. */
  async start(): Promise<void> {
    const flags = {
      port: '0',
      unixsocket: join(this.folder, 'redis.sock'),
      dir: this.folder,
      appendonly: 'yes',
      appendfsync: 'everysec',
      save: '',
      'maxmemory-policy': 'noeviction',
    };
    this.#process = spawn(
      'redis-server',
      Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
      { stdio: 'ignore' },
    );
    await eventually(() => this.#answers(), { timeoutMs: 15_000 });
  }

  /** kill -9, as a machine would do it. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async flush(): Promise<void> {
    const client = this.client();
    await client.flushall();
    client.disconnect();
  }

  client(): Redis {
    const client = new Redis(join(this.folder, 'redis.sock'));
    client.on('error', () => undefined);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #answers(): Promise<boolean> {
    const client = new Redis(join(this.folder, 'redis.sock'), { retryStrategy: null, lazyConnect: true });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.ping()) === 'PONG';
    } finally {
      client.disconnect();
    }
  }
}
