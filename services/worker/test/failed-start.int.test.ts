import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { connectRedis, redisReady, ServiceStack } from '@concierge/runtime';
import { eventually, silentLog as log, temporaryDirectory, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { readConfig } from '../src/config.ts';
import { wire } from '../src/wire.ts';

const flags = ['--conditions=@concierge/source', '--no-warnings'];
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

let cleanUp: AsyncDisposableStack;
setUpEach((stack) => {
  cleanUp = stack;
});

/** The environment of a worker whose metrics port is taken: nearly all of it is open when it finds out. */
async function buildEnvironment(redis: TestRedis): Promise<Record<string, string>> {
  const taken = cleanUp.adopt(createServer().listen(0, '127.0.0.1'), (server) => void server.close());
  await once(taken, 'listening');
  const address = taken.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const folder = cleanUp.use(await temporaryDirectory());
  return {
    NODE_ENV: 'test',
    DATA_DIR: folder.path,
    REDIS_URL: redis.url,
    KEY_SECRET: 'k'.repeat(32),
    SANDBOX: 'off',
    METRICS_PORT: String(address.port),
  };
}

/** How many of each kind keep this process alive: connections, servers, timers. */
function openResources(): ReadonlyMap<string, number> {
  const byKind = Map.groupBy(process.getActiveResourcesInfo(), (kind) => kind);
  return new Map(Array.from(byKind, ([kind, some]) => [kind, some.length]));
}

/** How many connections the server has beside the one that asks. */
async function connectionsTo({ url }: TestRedis): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.adopt(connectRedis({ url, role: 'worker', log }), (opened) => opened.disconnect());
  await redisReady(redis, 60_000);
  return (
    String(await redis.client('LIST'))
      .trim()
      .split('\n').length - 1
  );
}

describe('a worker that cannot start', () => {
  it('leaves no connection, server or timer behind', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const config = readConfig(await buildEnvironment(redis));
    const before = openResources();
    const stack = new ServiceStack();
    await expect(wire(config, { stack, log })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(await connectionsTo(redis)).toBeGreaterThan(0);
    await stack.stop(0);
    await eventually(async () => (await connectionsTo(redis)) === 0);
    await eventually(() => {
      const after = [...openResources()];
      expect(after.filter(([kind, count]) => count > (before.get(kind) ?? 0))).toEqual([]);
      return true;
    });
  });

  it('closes what it has opened and ends with 1', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const child = spawn(process.execPath, [...flags, main], { env: await buildEnvironment(redis), stdio: ['ignore', 'pipe', 'inherit'] });
    cleanUp.defer(() => void child.kill('SIGKILL'));
    const ended = once(child, 'close');
    const output = await text(child.stdout);
    expect(await ended).toEqual([1, null]);
    expect(output).toContain('cannot start');
    expect(output).toContain('EADDRINUSE');
    expect(output).not.toContain('did not stop');
    await eventually(async () => (await connectionsTo(redis)) === 0);
  });
});
