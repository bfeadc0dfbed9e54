import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { eventually, freePort, startScriptedModel, System } from '@concierge/testing';
import matter from 'gray-matter';
import { Redis } from 'ioredis';
import { z } from 'zod';

const Compose = z.object({
  'x-environment': z.object({ REDIS_URL: z.string() }),
  services: z.object({ redis: z.object({ command: z.array(z.string()) }) }),
});

const root = new URL('../../../', import.meta.url);

/** What compose would start, with the secrets that an operator's first command makes in `folder`. */
async function readCompose(folder: string): Promise<{ readonly command: readonly string[]; readonly url: (address: string) => string }> {
  await promisify(execFile)(fileURLToPath(new URL('infra/make-secrets.sh', root)), [folder]);
  const text = await readFile(new URL('docker-compose.yml', root), 'utf8');
  const { data } = matter(`---\n${text.replaceAll(/\$\{REDIS_MAXMEMORY:-([^}]*)\}/gu, '$1').replaceAll('/run/secrets', folder)}\n---\n`);
  const { services, 'x-environment': environment } = Compose.parse(data);
  const password = (await readFile(join(folder, 'redis_password'), 'utf8')).trim();
  const url = (address: string): string => environment.REDIS_URL.replace('concierge@redis:6379', `concierge:${password}@${address}`);
  return { command: services.redis.command, url };
}

describe('the Redis of docker-compose.yml', () => {
  it('lets the services work and refuses those without the password, and what empties or administers it', async () => {
    await using cleanUp = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'concierge-compose-redis-'));
    cleanUp.defer(async () => rm(folder, { recursive: true }));
    const { command, url } = await readCompose(join(folder, 'secrets'));
    const [program = '', ...args] = command;
    const port = await freePort();
    const server = spawn(program, [...args, `--port ${String(port)}`, '--bind 127.0.0.1', `--dir ${folder}`], {
      stdio: 'ignore',
    });
    cleanUp.defer(async () => {
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
    });
    const address = `127.0.0.1:${String(port)}`;
    const services = new Redis(url(address), { lazyConnect: true, disconnectTimeout: 50 });
    cleanUp.defer(() => services.disconnect());
    services.on('error', () => undefined);
    await eventually(async () => (await services.ping()) === 'PONG');

    const model = await startScriptedModel();
    cleanUp.defer(async () => model.close());
    const system = await System.start({ modelUrl: model.url, crons: 1, env: { REDIS_URL: url(address) } });
    cleanUp.use(system);
    const { admin } = await system.createTenant('acme');
    const answer = await fetch(`${system.url}/api/admin`, {
      method: 'POST',
      headers: { 'X-API-Key': admin, 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify({ message: '[[say:behind a password]]' }),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('behind a password')]);

    const stranger = new Redis(`redis://${address}`, { retryStrategy: null, lazyConnect: true, disconnectTimeout: 50 });
    cleanUp.defer(() => stranger.disconnect());
    stranger.on('error', () => undefined);
    await expect(stranger.ping()).rejects.toThrow(/NOAUTH/u);
    for (const [name, ...rest] of [['flushall'], ['keys', '*'], ['config', 'set', 'maxmemory', '1'], ['shutdown']]) {
      await expect(services.call(name ?? '', ...rest)).rejects.toThrow(/NOPERM/u);
    }
  });
});
