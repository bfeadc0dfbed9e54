import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestRedis } from '@concierge/testing';
import { connectRedis, createLog, redisReady } from '../src/index.ts';

describe('a Redis connection that writes together', () => {
  let server: TestRedis;
  const log = createLog({ service: 'test', level: 'silent' });

  beforeAll(async () => {
    server = await TestRedis.start();
  });

  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  it('answers commands of one round in their order', async () => {
    const redis = connectRedis({ url: server.url, role: 'worker', log });
    await redisReady(redis, 60_000);
    const answers = await Promise.all(Array.from({ length: 200 }, async () => redis.incr('counter')));
    expect(answers).toEqual(Array.from({ length: 200 }, (_, number) => number + 1));
    await redis.quit();
  });

  it('keeps what is written in one round back until its end', async () => {
    const redis = connectRedis({ url: server.url, role: 'worker', log });
    await redisReady(redis, 60_000);
    const { stream } = redis;
    const both = Promise.all([redis.set('a', '1'), redis.set('b', '2')]);
    expect({ corked: stream.writableCorked, isWaiting: stream.writableLength > 0 }).toEqual({ corked: 1, isWaiting: true });
    await both;
    expect({ corked: stream.writableCorked, isWaiting: stream.writableLength > 0 }).toEqual({ corked: 0, isWaiting: false });
    await redis.quit();
  });

  it('goes on after the connection was lost between the write and its release', async () => {
    const redis = connectRedis({ url: server.url, role: 'worker', log });
    await redisReady(redis, 60_000);
    const lost = redis.set('c', '3');
    redis.disconnect(true);
    await lost;
    expect(await redis.get('c')).toBe('3');
    await redis.quit();
  });
});
