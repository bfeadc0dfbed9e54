import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, jest } from '@jest/globals';
import { canRunPostgres, eventually, startPostgres, temporaryDirectory, TestRedis } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';

/** Each test starts the service, some of them twice and a database before it. */
jest.setTimeout(240_000);

const flags = ['--conditions=@concierge/source', '--no-warnings'];
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

let cleanUp: AsyncDisposableStack;
let folder: string;
setUpEach(async (stack) => {
  cleanUp = stack;
  folder = stack.use(await temporaryDirectory()).path;
});

class Started {
  output = '';
  readonly child;

  constructor(env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [...flags, main], { env: { DATA_DIR: folder, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    cleanUp.defer(() => void this.child.kill('SIGKILL'));
    this.child.stdout.on('data', (chunk) => (this.output += String(chunk)));
  }

  async shows(part: string): Promise<void> {
    await eventually(() => this.output.includes(part), { timeoutMs: 100_000 });
  }
}

/** What it prints to standard error, and its exit code. */
async function refused(env: Readonly<Record<string, string>>): Promise<{ code: unknown; lines: string[]; output: string }> {
  const started = new Started(env);
  const ended = once(started.child, 'close');
  const lines = (await text(started.child.stderr)).trimEnd().split('\n');
  const [code]: unknown[] = await ended;
  return { code, lines, output: started.output };
}

describe('a service', () => {
  it('lists every bad value at once and ends with 1', async () => {
    const { code, lines } = await refused({ NODE_ENV: 'production', KEY_SECRET: 'k'.repeat(31), METRICS_PORT: 'abc', DATABASE_POOL: '0' });
    expect(code).toBe(1);
    expect(lines).toEqual([
      'cron: bad configuration:',
      '  - REDIS_URL: must be a redis:// or rediss:// address, or unix:/path (not set)',
      '  - DATABASE_POOL: must be a whole number from 1 to 1000 (given: "0")',
      '  - KEY_SECRET: must have at least 32 characters (given: 31 characters)',
      '  - METRICS_PORT: must be a whole number from 0 to 65535 (given: "abc")',
      '  - SECRETS_KEY: is required in production (not set)',
    ]);
  });

  it('takes its secrets from files, and says first which version it is', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const write = async (name: string, value: string): Promise<string> => {
      await writeFile(join(folder, name), value);
      return join(folder, name);
    };
    const started = new Started({
      NODE_ENV: 'production',
      KEY_SECRET_FILE: await write('key_secret', `${'k'.repeat(32)}\n`),
      SECRETS_KEY_FILE: await write('secrets_key', 's'.repeat(43)),
      REDIS_URL_FILE: await write('redis_url', redis.url),
      LOG_PRETTY: '0',
    });
    await started.shows('"msg":"ready"');
    const [first = ''] = started.output.split('\n');
    expect(JSON.parse(first)).toMatchObject({ service: 'cron', msg: 'starting', version: '0.1.0', build: 'source' });
  });

  it('ends with one line that names the setting when Redis refuses its password', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const client = redis.client();
    await client.config('SET', 'requirepass', 'the right one');
    client.disconnect();
    const { code, output } = await refused({ KEY_SECRET: 'k'.repeat(32), REDIS_URL: redis.url, LOG_PRETTY: '0' });
    expect(code).toBe(1);
    const fatal = output.split('\n').filter((line) => line.includes('"level":60'));
    expect(fatal).toHaveLength(1);
    expect(fatal[0]).toContain('REDIS_URL: must lead to a Redis that can be used');
    expect(fatal[0]).toContain('NOAUTH');
    expect(output).not.toContain('stack');
  });
});

(canRunPostgres() ? describe : describe.skip)('a service over PostgreSQL', () => {
  it('warns with figures when all that run may open more connections than there are', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const postgres = cleanUp.use(await startPostgres());
    const env = { KEY_SECRET: 'k'.repeat(32), REDIS_URL: redis.url, DATABASE_URL: postgres.url, LOG_PRETTY: '0' };
    const first = new Started({ ...env, DATABASE_POOL: '60' });
    await first.shows('"msg":"ready"');
    const second = new Started({ ...env, DATABASE_POOL: '60' });
    await second.shows('2 processes may open 120 connections to PostgreSQL');
    expect(second.output).toContain('"max":100');
  });

  it('ends with one line that names the setting when there is no connection for it', async () => {
    const redis = cleanUp.use(await TestRedis.start());
    const postgres = cleanUp.use(await startPostgres());
    await postgres.asAdmin('alter role concierge connection limit 0');
    const { code, output } = await refused({
      KEY_SECRET: 'k'.repeat(32),
      REDIS_URL: redis.url,
      DATABASE_URL: postgres.url,
      LOG_PRETTY: '0',
    });
    expect(code).toBe(1);
    expect(output.split('\n').filter((line) => line.includes('DATABASE_URL: must lead to a database'))).toHaveLength(1);
    expect(output).toContain('too many connections');
  });
});
