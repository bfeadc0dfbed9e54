import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { assertNoEviction, ConfigError, createLog, openRedis } from '@concierge/runtime';
import { freePort, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';

const log = createLog({ service: 'test', level: 'silent' });
const password = 'p@ss/word';

let cleanUp: AsyncDisposableStack;
setUpEach((stack) => {
  cleanUp = stack;
});

/** A Redis with a password on a port of its own; its port. */
async function startGuarded(): Promise<number> {
  const port = await freePort();
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--requirepass', password];
  const server = spawn('redis-server', flags, { stdio: 'ignore' });
  cleanUp.defer(async () => {
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  });
  return port;
}

async function findProblems(opening: Promise<unknown>): Promise<readonly string[]> {
  const error = await opening.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConfigError)) throw new Error(`no ConfigError: ${String(error)}`);
  return error.problems;
}

describe('opening Redis at the start of a service', () => {
  it('names the setting and the cause when nothing listens, without the password', async () => {
    const port = await freePort();
    const url = `redis://concierge:secret@127.0.0.1:${String(port)}`;
    const [problem = '', ...others] = await findProblems(openRedis({ url, role: 'worker', log, timeoutMs: 5000 }, cleanUp));
    expect(others).toEqual([]);
    expect(problem).toMatch(/^REDIS_URL: must lead to a Redis that can be used \(redis:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/u);
    expect(problem).not.toContain('secret');
  });

  it.each([
    ['a wrong one', ':wrong@', 'WRONGPASS'],
    ['none', '', 'NOAUTH'],
  ])('gives up at once when the password is %s', async (_case, credentials, cause) => {
    const port = String(await startGuarded());
    const right = `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`;
    await openRedis({ url: right, role: 'worker', log, timeoutMs: 60_000 }, cleanUp);
    // With a deadline that no test would reach.
    const refused = openRedis({ url: `redis://${credentials}127.0.0.1:${port}`, role: 'worker', log, timeoutMs: 600_000 }, cleanUp);
    expect((await findProblems(refused))[0]).toContain(cause);
  });

  it('refuses one that may evict what was accepted', async () => {
    const server = cleanUp.use(await TestRedis.start());
    const redis = await openRedis({ url: server.url, role: 'worker', log }, cleanUp);
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await findProblems(assertNoEviction(redis, log))).toEqual([
      'REDIS_URL: must lead to a Redis that keeps everything (Redis has maxmemory-policy allkeys-lru; Concierge needs noeviction)',
    ]);
  });

  it('waits for one that is still starting', async () => {
    const server = cleanUp.use(await TestRedis.start());
    await server.kill();
    const opening = openRedis({ url: server.url, role: 'worker', log, timeoutMs: 60_000 }, cleanUp);
    await server.start();
    const redis = await opening;
    expect(await redis.ping()).toBe('PONG');
  });
});
