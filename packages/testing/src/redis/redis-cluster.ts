import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { connectRedis, withSlots } from '@concierge/runtime';
import { createLog } from '@concierge/runtime/process';
import { Redis } from 'ioredis';
import { inheritedEnvironment } from '../config.ts';
import { eventually } from '../eventually.ts';
import { freePort } from '../free-port.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

const DISCONNECT_TIMEOUT_MS = 50;
const MASTERS = 3;
const HASH_SLOTS = 16_384;
/** After so much silence of a master its replica takes its place. */
const NODE_TIMEOUT_MS = 2000;
const STARTED_WITHIN_MS = 90_000;

interface Runtime {
  readonly connectRedis: typeof connectRedis;
  readonly withSlots: typeof withSlots;
}

interface Node {
  readonly port: number;
  readonly busPort: number;
  readonly process: ChildProcess;
  readonly client: Redis;
}

/** A Redis Cluster of three masters and a replica of each, as real processes. */
export class RedisCluster implements AsyncDisposable {
  readonly #nodes: Node[] = [];
  readonly #stack = new AsyncDisposableStack();
  readonly #nodeTimeoutMs: number;
  readonly #runtime: Runtime;

  private constructor(nodeTimeoutMs: number, runtime: Runtime) {
    this.#nodeTimeoutMs = nodeTimeoutMs;
    this.#runtime = runtime;
  }

  static async start({ nodeTimeoutMs = NODE_TIMEOUT_MS } = {}): Promise<RedisCluster> {
    await using stack = new AsyncDisposableStack();
    // Loaded where it is used: most files that import this package have no cluster.
    const cluster = stack.use(new RedisCluster(nodeTimeoutMs, await import('@concierge/runtime')));
    await cluster.#start();
    stack.move();
    return cluster;
  }

  /** As REDIS_URL names it. */
  get url(): string {
    return `redis+cluster://${this.#nodes.map(({ port }) => `127.0.0.1:${String(port)}`).join(',')}`;
  }

  /** For a slot on each master. */
  get slots(): number {
    return MASTERS;
  }

  /** As a service connects. */
  client(): Redis {
    const url = this.#runtime.withSlots(this.url, MASTERS);
    return this.#runtime.connectRedis({ url, role: 'worker', log: createLog({ service: 'test', level: 'silent' }) });
  }

  /** Names on one of the masters that there were at first, or on what has taken its place. */
  async keys(master: number): Promise<string[]> {
    return await (await this.#holder(master)).client.keys('*');
  }

  /** kill -9; resolves when its replica has taken its place. */
  async killMaster(master: number): Promise<void> {
    const node = await this.#holder(master);
    await end(node.process);
    await eventually(async () => (await this.#holder(master)) !== node, { timeoutMs: STARTED_WITHIN_MS });
  }

  /** SIGSTOP, of a master and of its replica: none takes its place. */
  freeze(master: number): void {
    for (const { process } of this.#pair(master)) process.kill('SIGSTOP');
  }

  /** SIGSTOP of the master alone; resolves when its replica has taken its place. */
  async freezeMaster(master: number): Promise<void> {
    const node = await this.#holder(master);
    node.process.kill('SIGSTOP');
    await eventually(async () => (await this.#holder(master)) !== node, { timeoutMs: STARTED_WITHIN_MS });
  }

  thaw(master: number): void {
    for (const { process } of this.#pair(master)) process.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { client } of this.#nodes) client.disconnect();
    await Promise.all(this.#nodes.map(async ({ process }) => end(process)));
    await this.#stack.disposeAsync();
  }

  #pair(master: number): Node[] {
    return this.#nodes.filter((_, index) => index % MASTERS === master);
  }

  /** The node of a pair that is the master, as the other pairs see it. */
  async #holder(master: number): Promise<Node> {
    const other = this.#nodes.find(
      ({ process }, index) => index % MASTERS !== master && process.exitCode === null && process.signalCode === null,
    );
    const ranges = other === undefined ? [] : await other.client.cluster('SLOTS');
    const first = findFirst(master);
    const found = ranges.find((range) => Array.isArray(range) && Number(range[0]) <= first && first <= Number(range[1]));
    const [, , holder] = Array.isArray(found) ? found : [];
    const port = Array.isArray(holder) ? Number(holder[1]) : 0;
    const node = this.#nodes.find((each) => each.port === port);
    if (node === undefined) throw new Error('no node holds it');
    return node;
  }

  async #start(): Promise<void> {
    for (let index = 0; index < MASTERS * 2; index += 1) this.#nodes.push(await this.#serve());
    for (const [index, { client }] of this.#nodes.entries()) {
      await eventually(async () => (await client.ping()) === 'PONG', { timeoutMs: STARTED_WITHIN_MS });
      await client.cluster('SET-CONFIG-EPOCH', index + 1);
      if (index < MASTERS) await client.call('CLUSTER', 'ADDSLOTSRANGE', findFirst(index), findFirst(index + 1) - 1);
    }
    const [first] = this.#nodes;
    for (const { port, busPort } of this.#nodes.slice(1)) await first?.client.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
    await this.#all(async ({ client }) => (await client.cluster('INFO')).includes(`cluster_known_nodes:${String(MASTERS * 2)}`));
    for (const [index, { client }] of this.#nodes.entries()) {
      if (index < MASTERS) continue;
      const id = (await this.#nodes[index - MASTERS]?.client.cluster('MYID')) ?? '';
      await eventually(async () => client.cluster('REPLICATE', id), { timeoutMs: STARTED_WITHIN_MS });
      await eventually(async () => (await client.info('replication')).includes('master_link_status:up'), { timeoutMs: STARTED_WITHIN_MS });
    }
    await this.#all(async ({ client }) => (await client.cluster('INFO')).includes('cluster_state:ok'));
    // Each master knows its replica, and can be replaced by it.
    await this.#all(async ({ client }) => (await client.cluster('SLOTS')).every((range) => Array.isArray(range) && range.length === 4));
  }

  async #all(holds: (node: Node) => Promise<boolean>): Promise<void> {
    for (const node of this.#nodes) await eventually(async () => holds(node), { timeoutMs: STARTED_WITHIN_MS });
  }

  async #serve(): Promise<Node> {
    const [port, busPort] = [await freePort(), await freePort()];
    const folder = this.#stack.use(await temporaryDirectory()).path;
    const flags = {
      port,
      bind: '127.0.0.1',
      dir: folder,
      'cluster-enabled': 'yes',
      'cluster-port': busPort,
      'cluster-node-timeout': this.#nodeTimeoutMs,
      // A part that is away keeps the others from nothing.
      'cluster-require-full-coverage': 'no',
      'cluster-replica-validity-factor': 0,
      appendonly: 'yes',
      appendfsync: 'no',
      save: '',
      'maxmemory-policy': 'noeviction',
      'repl-diskless-sync-delay': 0,
    };
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const process = spawn('redis-server', args, { stdio: 'ignore', env: inheritedEnvironment({}) });
    const client = new Redis(port, '127.0.0.1', { disconnectTimeout: DISCONNECT_TIMEOUT_MS });
    client.on('error', () => undefined);
    return { port, busPort, process, client };
  }
}

/** Where the part of the key space begins that a master holds. */
function findFirst(master: number): number {
  return Math.ceil((HASH_SLOTS * master) / MASTERS);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
