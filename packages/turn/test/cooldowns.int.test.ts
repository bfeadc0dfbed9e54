import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { eventually, silentLog as log, TestRedis } from '@concierge/testing';
import { Cooldowns } from '../src/index.ts';

const HOUR_MS = 3_600_000;

let redis: TestRedis;
let open: (times?: Partial<Record<'firstMs' | 'maxMs' | 'probeMs' | 'memoryMs', number>>) => Promise<Cooldowns>;

setUpEach(async (stack) => {
  redis = stack.use(await TestRedis.start());
  open = async (times = { firstMs: HOUR_MS, maxMs: HOUR_MS }) => {
    const [client, subscriber] = [redis.client(), redis.client()];
    stack.defer(() => {
      client.disconnect();
      subscriber.disconnect();
    });
    const cooldowns = new Cooldowns({ redis: client, subscriber, times, log });
    await cooldowns.start();
    return cooldowns;
  };
});

describe('a model that failed', () => {
  it('is not asked first in any process, nor in one that starts later, until it answers', async () => {
    const [one, other] = [await open(), await open()];
    expect([one.isAllWell, await one.mayAsk('openai/a')]).toEqual([true, true]);
    one.failed('openai/a', { isProviders: false });
    await eventually(() => !one.isAllWell && !other.isAllWell);
    const later = await open();
    for (const each of [one, other, later]) {
      expect(await each.mayAsk('openai/a')).toBe(false);
      expect(await each.mayAsk('openai/b')).toBe(true);
    }
    other.answered('openai/a');
    await eventually(() => one.isAllWell && later.isAllWell);
  });

  it('takes all models of its provider with it where the key is refused', async () => {
    const one = await open();
    one.failed('openai/a', { isProviders: true });
    await eventually(() => !one.isAllWell);
    expect([await one.mayAsk('openai/b'), await one.mayAsk('other/a')]).toEqual([false, true]);
  });

  it('is tried by one caller of all processes after its time', async () => {
    const times = { firstMs: 1, maxMs: 1, probeMs: HOUR_MS };
    const [one, other] = [await open(times), await open(times)];
    one.failed('openai/a', { isProviders: false });
    await eventually(() => !one.isAllWell && !other.isAllWell);
    const first = await eventually(async () => ((await one.mayAsk('openai/a')) ? 'one' : (await other.mayAsk('openai/a')) && 'other'));
    expect(['one', 'other']).toContain(first);
    expect([await one.mayAsk('openai/a'), await other.mayAsk('openai/a')]).toEqual([false, false]);
  });

  it('that many processes meet at once counts as one failure, and waits as long as it has asked for', async () => {
    const one = await open({ firstMs: 1000, maxMs: HOUR_MS });
    for (let call = 0; call < 5; call += 1) one.failed('openai/a', { isProviders: false, retryAfterMs: 600_000 });
    await eventually(() => !one.isAllWell);
    const client = redis.client();
    const [stored] = await client.hvals('concierge:{q0}:cooling-down');
    client.disconnect();
    expect(stored).toMatch(/:1$/u);
    expect(await one.mayAsk('openai/a')).toBe(false);
  });

  it('is forgotten with Redis, and then asked as ever', async () => {
    const one = await open();
    one.failed('openai/a', { isProviders: false });
    await eventually(() => !one.isAllWell);
    await redis.flush();
    one.failed('openai/b', { isProviders: false });
    await eventually(async () => one.mayAsk('openai/a'));
    expect((await open()).isAllWell).toBe(false);
  });
});
