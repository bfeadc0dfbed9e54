import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { askRedis } from './redis-protocol.mjs';
import { startRedis } from './redis.mjs';

/** What it answers: asked again where none came within the second that `askRedis` waits, as on a busy machine. */
const ask = async (url, command) => eventually(() => askRedis(url, command));

describe('the embedded Redis', () => {
  let folder;
  let running;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-embedded-'));
    running = [];
  });
  afterEach(async () => {
    for (const redis of running) await redis.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (dataFolder = folder) => {
    mkdirSync(join(dataFolder, 'redis'), { recursive: true });
    const redis = await startRedis(dataFolder, { PATH: process.env.PATH });
    running.push(redis);
    return redis;
  };

  it('listens on its own socket, and returns the path', async () => {
    const { url } = await start();
    expect(url).toBe(`unix:${join(folder, 'redis', 'redis.sock')}`);
    expect(await ask(url, 'PING')).toBe('PONG');
    expect(readFileSync(join(folder, 'redis', 'url'), 'utf8').trim()).toBe(url);
  });

  it('keeps its data over a stop and a start', async () => {
    const first = await start();
    expect(await ask(first.url, 'SET kept yes')).toBe('OK');
    await first.stop();
    const second = await start();
    expect(await ask(second.url, 'SET kept no NX')).toBe('-1');
  });

  it('takes over from one that a killed start left behind', async () => {
    const left = await start();
    await ask(left.url, 'SET kept yes');
    left.child.state = 'stopped';
    const next = await start();
    expect(await ask(next.url, 'SET kept no NX')).toBe('-1');
  });

  it('leaves another Redis alone that has the process id of one that is long gone', async () => {
    const other = await start(join(folder, 'other'));
    const readPid = () => readFileSync(join(folder, 'other', 'redis', 'redis.pid'), 'utf8');
    expect(await ask(other.url, 'PING')).toBe('PONG');
    const pid = readPid();
    mkdirSync(join(folder, 'redis'));
    writeFileSync(join(folder, 'redis', 'redis.pid'), pid);
    const { url } = await start();
    expect(await ask(url, 'PING')).toBe('PONG');
    // One that was ended would have been started again, as another process.
    expect(await ask(other.url, 'PING')).toBe('PONG');
    expect(readPid()).toBe(pid);
  });

  it('uses a loopback port with a password where the path of a socket would be too long', async () => {
    const deep = join(folder, 'x'.repeat(110));
    const { url } = await start(deep);
    expect(url).toMatch(/^redis:\/\/:[\w-]+@127\.0\.0\.1:\d+$/u);
    expect(await ask(url, 'PING')).toBe('PONG');
    expect(await ask(url.replace(/:[\w-]+@/u, ''), 'PING')).toContain('NOAUTH');
    expect(statSync(join(deep, 'redis', 'url')).mode % 0o1000).toBe(0o600);
  });

  it('is not started when REDIS_URL names another', async () => {
    const redis = await startRedis(folder, { REDIS_URL: 'redis://elsewhere:6379' });
    expect(redis).toMatchObject({ url: 'redis://elsewhere:6379', child: null });
  });
});
