import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type TestRedis } from '@concierge/testing';
import type { Evidence } from '../audit/evidence.ts';
import type { SeededRandom } from '../load/seeded-random.ts';

export const redisFaults = ['gone', 'frozen', 'full', 'truncated'] as const;
export type RedisFault = (typeof redisFaults)[number];

/** Longer than a command may take, so that gateways and workers give up on it. */
const FROZEN_MS = 5000;
/** What an append-only file that is synced each second loses when the power goes. */
const LOST_MS = 1000;
const SAMPLE_EVERY_MS = 50;
const COME_BACK_TIMEOUT_MS = 60_000;
/** Share of the connections that are killed at a time. */
const KILLED_SHARE = 0.4;
/** Usually long enough for all clients to reconnect. */
const PAUSE_MS = { least: 300, most: 900 };

/** What can happen to Redis under a running system, and what is done in the meantime. */
export class RedisFaults {
  readonly #redis: TestRedis;
  readonly #evidence: Pick<Evidence, 'fault'>;

  constructor(redis: TestRedis, evidence: Pick<Evidence, 'fault'>) {
    this.#redis = redis;
    this.#evidence = evidence;
  }

  /** Resolves when Redis answers again, after `during` has been done while it did not, or not as it should. */
  async run(fault: RedisFault, during: () => Promise<void>): Promise<void> {
    switch (fault) {
      case 'gone': {
        await this.#redis.kill();
        this.#note('redis-kill');
        await during();
        await this.#redis.start();
        return;
      }
      case 'frozen': {
        await this.#freeze(during);
        return;
      }
      case 'full': {
        await this.#redis.fill();
        this.#note('redis-full');
        await during();
        await this.#redis.hasRoom();
        return;
      }
      case 'truncated': {
        await this.#truncate(during);
      }
    }
  }

  /** Closes random connections, `times` times. */
  async killConnections({ times, random }: { readonly times: number; readonly random: SeededRandom }): Promise<void> {
    using client = this.#client();
    const own = String(await client.redis.client('ID'));
    for (let time = 0; time < times; time += 1) {
      await wait(random.between(PAUSE_MS.least, PAUSE_MS.most));
      const list = String(await client.redis.client('LIST'));
      const ids = [...list.matchAll(/^id=(?<id>\d+) /gmu)].map(({ groups }) => groups?.['id'] ?? '');
      const chosen = ids.filter((id) => id !== own && random.chance(KILLED_SHARE));
      await Promise.all(chosen.map(async (id) => client.redis.client('KILL', 'ID', id)));
      this.#note('connections-killed');
    }
  }

  async #freeze(during: () => Promise<void>): Promise<void> {
    this.#redis.freeze();
    this.#note('redis-frozen');
    await Promise.all([during(), wait(FROZEN_MS)]);
    this.#redis.thaw();
    using client = this.#client();
    await eventually(async () => client.redis.ping(), { timeoutMs: COME_BACK_TIMEOUT_MS });
  }

  /** The power goes: nothing that was appended in the last second is on the disk when it comes back. */
  async #truncate(during: () => Promise<void>): Promise<void> {
    const sizes: { readonly atMs: number; readonly bytes: number }[] = [];
    const isOver = new AbortController();
    const sampling = (async () => {
      while (!isOver.signal.aborted) {
        sizes.push({ atMs: Date.now(), bytes: await this.#redis.written() });
        await wait(SAMPLE_EVERY_MS);
      }
    })();
    await wait(LOST_MS);
    await during();
    const cutMs = Date.now();
    isOver.abort();
    await sampling;
    const kept = sizes.findLast(({ atMs }) => atMs <= cutMs - LOST_MS) ?? sizes[0];
    await this.#redis.losePower(kept?.bytes ?? 0);
    this.#note('redis-truncated');
  }

  #client(): Disposable & { readonly redis: ReturnType<TestRedis['client']> } {
    const redis = this.#redis.client();
    return {
      redis,
      [Symbol.dispose]: () => {
        redis.disconnect();
      },
    };
  }

  #note(kind: 'redis-kill' | 'redis-frozen' | 'redis-full' | 'redis-truncated' | 'connections-killed'): void {
    this.#evidence.fault({ atMs: Date.now(), kind, target: 'redis' });
  }
}
