import { randomUUID } from 'node:crypto';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readiness } from '@concierge/contract';
import type { IndexStore } from '@concierge/index';
import { eventLoopStallMs, waitForAnswer, type connectRedis } from '@concierge/runtime';
import { keyOf, readWorkers } from '@concierge/turn';
import { z } from 'zod';

/** Named checks; each rejects when its dependency cannot be used. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<unknown>>>;

const CHECK_TIMEOUT_MS = 2000;

/** Runs every check at once, each with a deadline. What went wrong is for the log, not for the answer. */
export async function readiness(checks: ReadinessChecks): Promise<Readiness> {
  const results = await Promise.all(Object.entries(checks).map(async ([name, check]) => [name, await runCheck(check)] as const));
  const ready = results.every(([, { ok }]) => ok);
  return { status: ready ? 'ready' : 'unready', checks: Object.fromEntries(results) };
}

async function runCheck(check: () => Promise<unknown>): Promise<Readiness['checks'][string]> {
  const startedMs = performance.now();
  // What has arrived while this process stood still is an answer, too.
  const late = waitForAnswer(CHECK_TIMEOUT_MS).then(() => {
    throw new Error('no answer in time');
  });
  const ok = await Promise.race([check(), late]).then(
    () => true,
    () => false,
  );
  return { ok, ms: Math.round((performance.now() - startedMs) * 10) / 10 };
}

/** Less free space than this counts as full: a message with its files needs more. */
const FREE_MIN_BYTES = 4 * 1024 * 1024;
/** Anyone may ask whether the service is ready, as often as they like; the disk is checked at most this often. */
const ASK_AGAIN_MS = 1000;

/** The folder that holds all data, and whether it can be written to. */
export class DataFolder {
  readonly #path: string;
  readonly #probe = `.ready-${randomUUID()}`;
  #asked: Promise<void> | undefined;
  #askedAtMs = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Writes a file and removes it: permissions alone do not show a disk that is full or broken.
   * @throws the disk's error
   */
  async assertWritable(): Promise<void> {
    if (this.#asked === undefined || performance.now() - this.#askedAtMs > ASK_AGAIN_MS) {
      this.#askedAtMs = performance.now();
      this.#asked = this.#write();
    }
    await this.#asked;
  }

  async #write(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#path);
    if (bavail * bsize < FREE_MIN_BYTES) throw new Error('the disk is full');
    const file = join(this.#path, this.#probe);
    try {
      await writeFile(file, 'x'.repeat(4096), { flush: true });
    } finally {
      await rm(file, { force: true });
    }
  }
}

interface ReadinessOptions {
  readonly redis: ReturnType<typeof connectRedis>;
  readonly index: Pick<IndexStore, 'check'>;
  readonly dataDir: string;
}

/** The dependencies that this service needs, by the names under which /readyz shows it. */
export function readinessChecks({ redis, index, dataDir }: ReadinessOptions): ReadinessChecks {
  const data = new DataFolder(dataDir);
  return {
    redis: async () => redis.ping(),
    index: async () => {
      await index.check();
    },
    data: async () => {
      await data.assertWritable();
    },
    loop: async () => {
      const stallMs = eventLoopStallMs();
      if (stallMs >= STALL_LIMIT_MS) throw new Error(`the event loop stood still for ${String(stallMs)} ms`);
      return Promise.resolve();
    },
    workers: async () => {
      await assertWorkersAlive(redis);
    },
  };
}

/** A gateway whose event loop stood still for longer in the last ten seconds answers no client in time. */
const STALL_LIMIT_MS = 5000;

/** @throws Error when no worker can take a turn: each is silent, draining, or has an event loop that stalls */
async function assertWorkersAlive(redis: ReturnType<typeof connectRedis>): Promise<void> {
  if (!(await readWorkers(redis)).some(({ state }) => state === 'running')) throw new Error('no worker can take a turn');
}

const WorkerFacts = z.object({ isDemo: z.boolean() });

/**
 * Whether a worker reports that the built-in demo model answers. False, too, where Redis cannot be asked: nothing
 * depends on it.
 */
export async function isDemoModel(redis: Pick<ReturnType<typeof connectRedis>, 'hvals'>): Promise<boolean> {
  const all = await redis.hvals(keyOf.workerFacts).catch(() => []);
  return all.some((facts) => WorkerFacts.safeParse(JSON.parse(facts)).data?.isDemo === true);
}
