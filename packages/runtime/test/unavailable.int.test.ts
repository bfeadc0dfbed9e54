import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually, TestRedis } from '@concierge/testing';
import { connectRedis, createLog, isUnavailable, redisReady } from '../src/index.ts';

const log = createLog({ service: 'test', level: 'silent' });

/** Two of the three parts of a command's time. */
async function untilLater(): Promise<void> {
  const sinceMs = performance.now();
  await eventually(() => performance.now() > sinceMs + 1200);
}

describe('isUnavailable', () => {
  let server: TestRedis;

  beforeAll(async () => {
    server = await TestRedis.start();
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  const catchFailure = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('recognizes a command whose connection was cut, one without a connection, and one that Redis has no memory for', async () => {
    const redis = connectRedis({ url: server.url, role: 'producer', log });
    await redisReady(redis, 60_000);
    await redis.config('SET', 'maxmemory', '1');
    expect(isUnavailable(await catchFailure(redis.set('a', 'b')))).toBe(true);
    await redis.config('SET', 'maxmemory', '0');
    const cut = catchFailure(redis.blpop('nothing', 0));
    await server.kill();
    expect(isUnavailable(await cut)).toBe(true);
    const later = await catchFailure(redis.get('a'));
    expect(isUnavailable(new Error('cannot look it up', { cause: later }))).toBe(true);
    redis.disconnect();
    await server.start();
  });

  it('recognizes a command that a frozen Redis does not answer', async () => {
    const redis = connectRedis({ url: server.url, role: 'producer', log });
    await redisReady(redis, 60_000);
    server.freeze();
    try {
      expect(isUnavailable(await catchFailure(redis.get('a')))).toBe(true);
    } finally {
      server.thaw();
    }
    redis.disconnect();
  });

  it.each([
    ['before it was sent', async () => Promise.resolve()],
    ['when it was answered', async () => new Promise<void>((resolve) => setImmediate(resolve))],
    ['after it had waited for a while', untilLater],
  ])('does not blame Redis when this process stood still: %s', async (_, begun) => {
    const redis = connectRedis({ url: server.url, role: 'producer', log });
    await redisReady(redis, 60_000);
    await redis.set('key', 'value');
    server.freeze();
    const answer = redis.get('key');
    await begun();
    server.thaw();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
    expect(await answer).toBe('value');
    await redis.quit();
  });

  it('does not match a mistake of ours', async () => {
    const redis = connectRedis({ url: server.url, role: 'producer', log });
    await redisReady(redis, 60_000);
    await redis.set('text', 'x');
    expect(isUnavailable(await catchFailure(redis.incr('text')))).toBe(false);
    expect(isUnavailable(new TypeError('no'))).toBe(false);
    await redis.quit();
  });

  it.each(['ENOSPC', 'EMFILE'])('recognizes %s, whatever error wraps it', (code) => {
    const error = Object.assign(new Error('no'), { code });
    expect(isUnavailable(new Error('cannot write', { cause: error }))).toBe(true);
  });
});
