import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { eventually, silentLog as log, TestRedis } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Redis } from 'ioredis';
import { Reconciler } from '../src/due/reconciler.ts';

let redis: Redis;

setUpOnce(async (stack) => {
  const server = stack.use(await TestRedis.start());
  redis = server.client();
  stack.defer(() => redis.disconnect());
});

/** Longer than a look in a twentieth of the time would be waited for below. */
const STANDS_STILL_S = 5;

/** Shares a task with other processes; one of its looks takes as long as it is told to. */
class Looks extends Reconciler {
  readonly name = 'looks';
  count = 0;
  readonly #slow: number;

  constructor(slow: number) {
    super({ everyMs: 20, log });
    this.#slow = slow;
  }

  override async reconcile(): Promise<void> {
    await this.share(redis, { task: 'looks', everyMs: 50 }, async () => {
      this.count += 1;
      if (this.count === this.#slow) await promisify(execFile)('sleep', [String(STANDS_STILL_S)]);
    });
  }
}

describe('a look that is shared by all processes', () => {
  it('is taken as often as before, once a process has stood still in the middle of one', async () => {
    const looks = new Looks(3);
    looks.start();
    await eventually(() => looks.count >= 6, { timeoutMs: 60_000 });
    await looks.stop();
    expect(looks.count).toBeGreaterThanOrEqual(6);
  });
});
