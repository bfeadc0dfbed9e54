import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { inheritedEnvironment } from '../config.ts';
import { eventually } from '../eventually.ts';

/**
 * ioredis keeps its process for two seconds after disconnect() otherwise, and Jest ends a worker by force after half a
 * second.
 */
const DISCONNECT_TIMEOUT_MS = 50;

export interface TestRedisOptions {
  /** Added to this process' own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Syncs every second, as in production: for what measures it. */
  readonly syncs?: boolean;
}

/**
 * A real redis-server of a test's own, on a Unix socket in a temporary folder, append-only as in production. It does
 * not sync: a `kill` loses nothing of what was written, `losePower` states what is lost, and Redis would stand still
 * for as long as the disk of a busy machine does.
 */
export class TestRedis implements AsyncDisposable {
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #syncs: boolean;
  #process: ChildProcess | undefined;

  private constructor(folder: string, { env = {}, syncs = false }: TestRedisOptions) {
    this.folder = folder;
    this.#env = env;
    this.#syncs = syncs;
  }

  static async start(options: TestRedisOptions = {}): Promise<TestRedis> {
    const redis = new TestRedis(await mkdtemp(join(tmpdir(), 'concierge-redis-')), options);
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
      appendfsync: this.#syncs ? 'everysec' : 'no',
      save: '',
      'maxmemory-policy': 'noeviction',
    };
    this.#process = spawn(
      'redis-server',
      Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
      { stdio: 'ignore', env: inheritedEnvironment(this.#env) },
    );
    await eventually(() => this.#answers(), { timeoutMs: 60_000 });
  }

  /** kill -9, as a machine would do it. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** SIGSTOP: connections stay, and nothing is answered. */
  freeze(): void {
    this.#process?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process?.kill('SIGCONT');
  }

  /** Refuses what needs memory, until it `hasRoom` again. */
  async fill(): Promise<void> {
    await this.#setMaxMemory('1');
  }

  async hasRoom(): Promise<void> {
    await this.#setMaxMemory('0');
  }

  /** How far its append-only file has been written: for `losePower`. */
  async written(): Promise<number> {
    return (await stat(await this.#appendOnlyFile())).size;
  }

  /** Simulates a power loss: kills it, and starts it again without what it wrote after `written`. */
  async losePower(written: number): Promise<void> {
    await this.kill();
    await truncate(await this.#appendOnlyFile(), written);
    await this.start();
  }

  async flush(): Promise<void> {
    const client = this.client();
    await client.flushall();
    client.disconnect();
  }

  client(): Redis {
    const client = new Redis(join(this.folder, 'redis.sock'), { disconnectTimeout: DISCONNECT_TIMEOUT_MS });
    client.on('error', () => undefined);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #setMaxMemory(bytes: string): Promise<void> {
    const client = this.client();
    await client.config('SET', 'maxmemory', bytes);
    client.disconnect();
  }

  async #appendOnlyFile(): Promise<string> {
    const folder = join(this.folder, 'appendonlydir');
    const name = (await readdir(folder)).find((file) => file.endsWith('.incr.aof'));
    if (name === undefined) throw new Error('no append-only file');
    return join(folder, name);
  }

  async #answers(): Promise<boolean> {
    const client = new Redis(join(this.folder, 'redis.sock'), {
      retryStrategy: null,
      lazyConnect: true,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.ping()) === 'PONG';
    } finally {
      client.disconnect();
    }
  }
}
