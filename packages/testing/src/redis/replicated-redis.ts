import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { inheritedEnvironment } from '../config.ts';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

const DISCONNECT_TIMEOUT_MS = 50;
const MASTER = 'concierge';
const SENTINELS = 3;
/** So that a test need not wait; on a machine that stands still sentinels replace a master that lives, too. */
const DOWN_AFTER_MS = 1000;
/** A sentinel that stood still for two seconds decides nothing for thirty (its TILT mode), each time anew. */
const STARTED_WITHIN_MS = 180_000;

interface Server {
  readonly port: number;
  readonly process: ChildProcess;
}

/** A master, a replica of it, and three sentinels that put one in the place of the other, as real processes. */
export class ReplicatedRedis implements AsyncDisposable {
  readonly #folder: string;
  readonly #servers: Server[] = [];
  readonly #sentinels: Server[] = [];
  readonly #downAfterMs: number;
  readonly #stack = new AsyncDisposableStack();

  private constructor(folder: string, downAfterMs: number) {
    this.#folder = folder;
    this.#downAfterMs = downAfterMs;
  }

  /** `downAfterMs`: of silence until the master is replaced. */
  static async start({ downAfterMs = DOWN_AFTER_MS } = {}): Promise<ReplicatedRedis> {
    await using stack = new AsyncDisposableStack();
    const replicated = stack.use(new ReplicatedRedis(stack.use(await temporaryDirectory()).path, downAfterMs));
    await replicated.#start();
    replicated.#stack.use(stack.move());
    return replicated;
  }

  /** As REDIS_URL names it. */
  get url(): string {
    return `redis+sentinel://${this.#sentinels.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')}/${MASTER}`;
  }

  /** A connection to the master, whichever it is. */
  client(): Redis {
    const sentinels = this.#sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
    const client = new Redis({ sentinels, name: MASTER, failoverDetector: true, disconnectTimeout: DISCONNECT_TIMEOUT_MS });
    client.on('error', () => undefined);
    return client;
  }

  /** Of the server that was the replica at first. */
  get replicaPort(): number {
    return this.#servers[1]?.port ?? 0;
  }

  async masterPort(): Promise<number> {
    const sentinel = this.#sentinels.find(({ process: { exitCode } }) => exitCode === null);
    const client = this.#connect(sentinel?.port ?? 0);
    try {
      const found = await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER);
      return Number(Array.isArray(found) ? found[1] : 0);
    } finally {
      client.disconnect();
    }
  }

  /** kill -9 of the master; resolves when the sentinels have put the replica in its place. */
  async killMaster(): Promise<void> {
    const port = await this.masterPort();
    const master = this.#servers.find((server) => server.port === port);
    if (master !== undefined) await end(master.process);
    await eventually(async () => (await this.masterPort()) !== port, { timeoutMs: STARTED_WITHIN_MS });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#servers, ...this.#sentinels].map(async ({ process }) => end(process)));
    await this.#stack.disposeAsync();
  }

  async #start(): Promise<void> {
    const master = await this.#serve();
    const replica = await this.#serve('--replicaof', '127.0.0.1', String(master.port));
    const client = this.#connect(replica.port);
    await eventually(async () => (await client.info('replication')).includes('master_link_status:up'), { timeoutMs: STARTED_WITHIN_MS });
    client.disconnect();
    for (let index = 0; index < SENTINELS; index += 1) this.#sentinels.push(await this.#watch(master.port, index));
    for (const { port } of this.#sentinels) {
      const sentinel = this.#connect(port);
      await eventually(
        async () => {
          const told = await sentinel.info('sentinel');
          return told.includes('slaves=1') && told.includes(`sentinels=${String(SENTINELS)}`);
        },
        { timeoutMs: STARTED_WITHIN_MS },
      );
      sentinel.disconnect();
    }
  }

  async #serve(...more: string[]): Promise<Server> {
    const port = await freePort();
    const folder = this.#stack.use(await temporaryDirectory()).path;
    const flags = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--appendonly', 'yes', '--appendfsync', 'no'];
    const server = this.#run(
      'redis-server',
      [...flags, '--save', '', '--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0', ...more],
      port,
    );
    this.#servers.push(server);
    await this.#answers(port);
    return server;
  }

  /** A sentinel writes what it learns into its file. */
  async #watch(masterPort: number, index: number): Promise<Server> {
    const port = await freePort();
    const file = join(this.#folder, `sentinel-${String(index)}.conf`);
    const lines = [
      `port ${String(port)}`,
      'bind 127.0.0.1',
      `dir ${this.#folder}`,
      `sentinel monitor ${MASTER} 127.0.0.1 ${String(masterPort)} 2`,
      `sentinel down-after-milliseconds ${MASTER} ${String(this.#downAfterMs)}`,
      `sentinel failover-timeout ${MASTER} 10000`,
    ];
    await writeFile(file, `${lines.join('\n')}\n`);
    const sentinel = this.#run('redis-server', [file, '--sentinel'], port);
    await this.#answers(port);
    return sentinel;
  }

  #run(program: string, args: readonly string[], port: number): Server {
    return { port, process: spawn(program, args, { stdio: 'ignore', env: inheritedEnvironment({}) }) };
  }

  #connect(port: number): Redis {
    const client = new Redis(port, '127.0.0.1', { disconnectTimeout: DISCONNECT_TIMEOUT_MS });
    client.on('error', () => undefined);
    return client;
  }

  async #answers(port: number): Promise<void> {
    const client = this.#connect(port);
    try {
      await eventually(async () => (await client.ping()) === 'PONG', { timeoutMs: STARTED_WITHIN_MS });
    } finally {
      client.disconnect();
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
