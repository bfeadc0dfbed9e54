import type * as Ioredis from 'ioredis';
import type { Redis, RedisOptions } from 'ioredis';
import { z } from 'zod';
import { answerDeadline } from '../concurrency/tasks.ts';

/** A node that does not answer within this is passed over. */
const ANSWER_MS = 1000;
const LOOK_EVERY_MS = 1000;

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

/** Of a range of the key space: its first and last part, its master, and the replicas of that. */
const Range = z.tuple([z.number(), z.number(), z.tuple([z.string().nullable(), z.number()], z.unknown())], z.unknown());

interface Watch {
  readonly hashSlot: number;
  readonly at: NodeAddress;
  readonly onMoved: () => void;
}

/** How the nodes of a cluster are reached, and as whom. */
export type NodeOptions = Pick<RedisOptions, 'username' | 'password' | 'tls' | 'family'>;

/** Who holds what in a Redis Cluster, as its nodes say. */
export class ClusterMap {
  readonly #client: typeof Ioredis.Redis;
  readonly #options: NodeOptions;
  /** The one that answered last is asked first. */
  #nodes: NodeAddress[];
  readonly #watches = new Set<Watch>();
  #asking: { readonly node: NodeAddress; readonly redis: Redis } | undefined;
  #ranges: Promise<z.infer<typeof Range>[]> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(client: typeof Ioredis.Redis, nodes: readonly NodeAddress[], options: NodeOptions) {
    this.#client = client;
    this.#nodes = [...nodes];
    this.#options = options;
  }

  /** @throws when no node says who holds it */
  async findMaster(hashSlot: number): Promise<NodeAddress> {
    const found = findIn(await this.#readRanges(), hashSlot);
    if (found === undefined) throw new Error(`no node of the cluster holds slot ${String(hashSlot)}`);
    return found;
  }

  /**
   * Calls back once another node holds it: a node that froze closes no connection. The caller has a function to stop it
   * and calls that in any case.
   */
  watch(watch: Watch): () => void {
    this.#watches.add(watch);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    return () => {
      this.#watches.delete(watch);
      if (this.#watches.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#leave();
    };
  }

  async #look(): Promise<void> {
    const ranges = await this.#readRanges().catch(() => []);
    for (const watch of this.#watches) {
      const found = findIn(ranges, watch.hashSlot);
      if (found !== undefined && (found.host !== watch.at.host || found.port !== watch.at.port)) watch.onMoved();
    }
  }

  /** All who ask at once get one answer. */
  async #readRanges(): Promise<z.infer<typeof Range>[]> {
    this.#ranges ??= this.#askNodes().finally(() => {
      this.#ranges = undefined;
      if (this.#watches.size === 0) this.#leave();
    });
    return await this.#ranges;
  }

  /** One that is cut off from the others says so itself, and is believed only where all of them are. */
  async #askNodes(): Promise<z.infer<typeof Range>[]> {
    let last: unknown;
    let doubtful: z.infer<typeof Range>[] | undefined;
    // Learning makes another list.
    for (const node of this.#nodes) {
      try {
        const { ranges, isWell } = await this.#ask(node);
        this.#learn(node, ranges);
        if (isWell) return ranges;
        doubtful ??= ranges;
      } catch (error) {
        last = error;
      }
      this.#leave();
    }
    if (doubtful !== undefined) return doubtful;
    throw last instanceof Error ? last : new Error('no node of the cluster answers', { cause: last });
  }

  async #ask(node: NodeAddress): Promise<{ readonly ranges: z.infer<typeof Range>[]; readonly isWell: boolean }> {
    const redis = this.#connect(node);
    const late = answerDeadline(ANSWER_MS);
    const { promise: isLate, reject } = Promise.withResolvers<never>();
    // Without its stack: what it says is all that is known.
    const onLate = (): void => reject(new Error(`${node.host}:${String(node.port)} does not answer`));
    late.addEventListener('abort', onLate);
    try {
      const [info, slots] = await Promise.race([Promise.all([redis.cluster('INFO'), redis.cluster('SLOTS')]), isLate]);
      const ranges = z.array(Range).parse(slots);
      // A node that does not know its own name in the network is where it was asked.
      for (const [, , master] of ranges) master[0] = master[0] === null || master[0] === '' ? node.host : master[0];
      return { ranges, isWell: info.includes('cluster_state:ok') };
    } finally {
      late.removeEventListener('abort', onLate);
    }
  }

  #connect(node: NodeAddress): Redis {
    if (this.#asking?.node === node && this.#asking.redis.status !== 'end') return this.#asking.redis;
    this.#leave();
    const redis = new this.#client({
      ...this.#options,
      ...node,
      retryStrategy: null,
      enableReadyCheck: false,
      connectTimeout: ANSWER_MS,
      maxRetriesPerRequest: 0,
      disconnectTimeout: 50,
    });
    redis.on('error', () => undefined);
    this.#asking = { node, redis };
    return redis;
  }

  #leave(): void {
    this.#asking?.redis.disconnect();
    this.#asking = undefined;
  }

  #learn(answered: NodeAddress, ranges: readonly z.infer<typeof Range>[]): void {
    const masters = ranges.map(([, , [host, port]]) => ({ host: host ?? answered.host, port }));
    const isKnown = (node: NodeAddress): boolean => this.#nodes.some(({ host, port }) => host === node.host && port === node.port);
    const others = this.#nodes.filter((node) => node !== answered);
    this.#nodes = [answered, ...others, ...masters.filter((master) => !isKnown(master))];
  }
}

function findIn(ranges: readonly z.infer<typeof Range>[], hashSlot: number): NodeAddress | undefined {
  const range = ranges.find(([first, last]) => first <= hashSlot && hashSlot <= last);
  if (range === undefined) return undefined;
  const [host, port] = range[2];
  return { host: host ?? '', port };
}
