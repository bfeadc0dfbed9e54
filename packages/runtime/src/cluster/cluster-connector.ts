import { createConnection } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type * as Ioredis from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { ClusterMap, type NodeAddress, type NodeOptions } from './cluster-map.ts';

/** One for all connections of this process to a cluster. */
const maps = new Map<string, ClusterMap>();

/** A node that froze does not close its end. */
const DISCONNECT_MS = 200;

export interface ClusterSlot {
  /** Names the cluster: its address. */
  readonly url: string;
  readonly nodes: readonly NodeAddress[];
  readonly hashSlot: number;
  readonly options: NodeOptions;
  readonly retryAfterMs: (attempt: number) => number;
}

/**
 * Makes ordinary connections that lead to the master of one part of the key space, as the sentinel connector's lead to
 * the master of a name: each connection asks the cluster, and ends when another node has taken the master's place.
 */
export function toClusterConnector(ioredis: typeof Ioredis, slot: ClusterSlot): NonNullable<RedisOptions['Connector']> {
  const { url, nodes, hashSlot, options, retryAfterMs } = slot;
  const map = maps.get(url) ?? new ClusterMap(ioredis.Redis, nodes, options);
  maps.set(url, map);
  return class extends ioredis.AbstractConnector {
    #stopWatch: (() => void) | undefined;

    constructor() {
      super(DISCONNECT_MS);
    }

    override async connect(report: (type: string, error: Error) => void): Promise<typeof this.stream> {
      this.connecting = true;
      const at = await this.#findMaster(report);
      const target = { ...at, ...(options.family !== undefined && { family: options.family }) };
      const stream = options.tls === undefined ? createConnection(target) : connectTls({ ...target, ...options.tls });
      this.stream = stream;
      stream.once('error', (error) => {
        this.firstError = error;
      });
      const stop = map.watch({ hashSlot, at, onMoved: () => super.disconnect() });
      this.#stopWatch = stop;
      stream.once('close', stop);
      return stream;
    }

    override disconnect(): void {
      this.#stopWatch?.();
      super.disconnect();
    }

    async #findMaster(report: (type: string, error: Error) => void): Promise<NodeAddress> {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const found = await map.findMaster(hashSlot);
          if (this.connecting) return found;
        } catch (error) {
          report('error', error instanceof Error ? error : new Error(String(error)));
          await wait(retryAfterMs(attempt), undefined, { ref: false });
        }
        if (!this.connecting) throw new Error('Connection is closed.');
      }
    }
  };
}
