import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, TestRedis } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { checkConfiguration } from './configuration.mjs';

/** Each look at the configuration is a process that loads it. */
jest.setTimeout(300_000);

describe('the configuration of all services', () => {
  let folder;
  let env;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-configuration-'));
    env = { PATH: process.env.PATH, DATA_DIR: folder };
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** The lines that stop a start with these variables. */
  const problems = async (given) => {
    const error = await checkConfiguration({ ...env, ...given }).then(
      () => undefined,
      (thrown) => thrown,
    );
    if (error === undefined) return [];
    const [headline, ...lines] = error.message.split('\n');
    expect(headline).toBe('Concierge cannot start: bad configuration:');
    return lines.map((line) => line.replace(/^ {2}- /u, ''));
  };

  const writeProviders = (file) => writeFileSync(join(folder, 'providers.json'), typeof file === 'string' ? file : JSON.stringify(file));
  const openai = { baseUrl: 'https://models.example/v1', apiKeyEnv: 'OPENAI_API_KEY', models: { one: {}, two: {} } };

  it('is fine when nothing is set, and then the demo model answers', async () => {
    expect(await checkConfiguration(env)).toEqual({ isDemo: true });
    expect(await checkConfiguration({ ...env, OPENAI_API_KEY: 'k' })).toEqual({ isDemo: false });
  });

  it('has one line for every bad value of every service, and no secret in any', async () => {
    const lines = await problems({
      GATEWAY_PORT: 'abc',
      UI_PORT: '70000',
      WORKER_CONCURRENCY: '0',
      METRICS_PORT: '-1',
      OPS_TOKEN: 'hunter2',
      SHUTDOWN_GRACE_S: 'soon',
      KEY_SECRET: 'brief',
      REDIS_PASSWORD: 'for another Redis',
    });
    expect(lines.toSorted()).toEqual([
      'GATEWAY_PORT: must be a whole number from 0 to 65535 (given: "abc")',
      'KEY_SECRET: must have at least 32 characters (given: 5 characters)',
      'METRICS_PORT: must be a whole number from 0 to 65535 (given: "-1")',
      'OPS_TOKEN: must have at least 16 characters (given: 7 characters)',
      'SHUTDOWN_GRACE_S: must be a number of seconds from 0 to 3600 (given: "soon")',
      'UI_PORT: must be a whole number from 0 to 65535 (given: "70000")',
      'WORKER_CONCURRENCY: must be a whole number from 1 to 10000 (given: "0")',
    ]);
  });

  it('asks for a model that can answer in production, whose key may be in a file', async () => {
    writeProviders({ default: 'openai/one', providers: { openai } });
    const production = { NODE_ENV: 'production' };
    const [line, ...others] = await problems(production);
    expect(others).toEqual([]);
    expect(line).toMatch(/^PROVIDERS_FILE: .*providers\.json names no usable key for openai\/one.*OPENAI_API_KEY.*DEMO_MODEL=1/u);
    expect(await checkConfiguration({ ...env, ...production, DEMO_MODEL: '1' })).toEqual({ isDemo: true });
    writeFileSync(join(folder, 'key'), 'sk-1\n');
    expect(await checkConfiguration({ ...env, ...production, OPENAI_API_KEY_FILE: join(folder, 'key') })).toEqual({ isDemo: false });
    expect(await problems({ ...production, OPENAI_API_KEY_FILE: join(folder, 'none') })).toEqual([
      expect.stringMatching(/^OPENAI_API_KEY_FILE: must name a file with the value of OPENAI_API_KEY .*ENOENT/u),
    ]);
  });

  it('finds what is wrong in the providers file, and quotes no key', async () => {
    writeProviders('{"providers": {"x": {"apiKey": "sk-secret" oops');
    const [broken, ...none] = await problems({});
    expect(none).toEqual([]);
    expect(broken).toMatch(/^PROVIDERS_FILE: (?!.*secret).*providers\.json: is not valid JSON$/u);
    writeProviders({ default: 'openai/three', fallbacks: ['openai/two', 'missing/four'], providers: { openai } });
    expect(await problems({})).toEqual([
      expect.stringMatching(/^PROVIDERS_FILE: .*: default: openai\/three is not among the models of openai \(models: one, two\)$/u),
      expect.stringMatching(/^PROVIDERS_FILE: .*: fallbacks\.1: missing\/four is a model of no provider here \(providers: openai\)$/u),
    ]);
    expect(await problems({ PROVIDERS_FILE: join(folder, 'none.json') })).toEqual([
      expect.stringMatching(/^PROVIDERS_FILE: must name a file that exists \(given: ".*none\.json"\)$/u),
    ]);
    expect(await problems({ PROVIDERS_FILE: join(folder, 'none.json'), NODE_ENV: 'production' })).toEqual([
      expect.stringMatching(/^PROVIDERS_FILE: .*none\.json does not exist/u),
    ]);
  });

  it('asks a Redis that is given whether it can be used', async () => {
    const nowhere = `redis://concierge@127.0.0.1:${await freePort()}`;
    const [line, ...others] = await problems({ REDIS_URL: nowhere, REDIS_PASSWORD: 'secret' });
    expect(others).toEqual([]);
    expect(line).toMatch(/^REDIS_URL: must lead to a Redis that can be used \(redis:\/\/127\.0\.0\.1:\d+: (?!.*secret).*ECONNREFUSED/u);
    await using redis = await TestRedis.start();
    expect(await problems({ REDIS_URL: redis.url })).toEqual([]);
    const client = redis.client();
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    client.disconnect();
    expect(await problems({ REDIS_URL: redis.url })).toEqual([expect.stringContaining('maxmemory-policy allkeys-lru')]);
  });
});
