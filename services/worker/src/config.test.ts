import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@concierge/runtime/config';
import { temporaryDirectory } from '@concierge/testing';
import { readConfig } from './config.ts';

const least = { REDIS_URL: 'redis://127.0.0.1:6379', KEY_SECRET: 'k'.repeat(32), DATA_DIR: '/srv/concierge' };

const readProblems = (env: NodeJS.ProcessEnv): readonly string[] => {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    return error instanceof ConfigError ? error.problems : [String(error)];
  }
};

describe('the worker’s configuration', () => {
  it('has a default for everything but Redis and the key secret', () => {
    expect(readConfig(least)).toMatchObject({
      providersFile: '/srv/concierge/providers.json',
      concurrency: 32,
      tenantShare: 16,
      metrics: undefined,
      graceMs: 25_000,
    });
  });

  it('gives one tenant half of the worker unless configured otherwise', () => {
    expect(readConfig({ ...least, WORKER_CONCURRENCY: '7' }).tenantShare).toBe(4);
    expect(readConfig({ ...least, WORKER_CONCURRENCY: '8', TENANT_SHARE: '8' }).tenantShare).toBe(8);
  });

  it('names every bad value at once', () => {
    const problems = readProblems({
      ...least,
      WORKER_CONCURRENCY: '2',
      TENANT_SHARE: '3',
      METRICS_PORT: '70000',
      KEY_SECRET: '',
      SANDBOX: 'chroot',
      SANDBOX_RUNTIME: 'runsc --debug',
      HOST_DATA_DIR: 'data',
      WEB_SEARCH_KEY: 'secret',
    });
    expect(problems.map((line) => line.split(':', 1).join('')).toSorted((one, other) => one.localeCompare(other))).toEqual([
      'HOST_DATA_DIR',
      'KEY_SECRET',
      'METRICS_PORT',
      'SANDBOX',
      'SANDBOX_RUNTIME',
      'TENANT_SHARE',
      'WEB_SEARCH_PROVIDER',
    ]);
    expect(readProblems({ ...least, WORKER_CONCURRENCY: '2', TENANT_SHARE: '3' })).toEqual([
      'TENANT_SHARE: must not be more than WORKER_CONCURRENCY (given: "3")',
    ]);
  });

  it('has the demo model answer in production only when DEMO_MODEL=1 is set', () => {
    const production = { ...least, NODE_ENV: 'production', SECRETS_KEY: 's'.repeat(32) };
    expect(readConfig(least).mayUseDemoModel).toBe(true);
    expect(readConfig(production).mayUseDemoModel).toBe(false);
    expect(readConfig({ ...production, DEMO_MODEL: '1' }).mayUseDemoModel).toBe(true);
    expect(readProblems({ ...production, DEMO_MODEL: 'perhaps' })).toEqual(['DEMO_MODEL: must be 1 or 0 (given: "perhaps")']);
  });

  it('looks provider keys up in the environment it was given', () => {
    expect(readConfig({ ...least, OPENAI_API_KEY: 'sk-1' }).environment('OPENAI_API_KEY')).toBe('sk-1');
  });

  it('looks provider keys up in files, too', async () => {
    await using folder = await temporaryDirectory();
    await writeFile(join(folder.path, 'key'), 'sk-2\n');
    const { environment } = readConfig({ ...least, OPENAI_API_KEY_FILE: join(folder.path, 'key') });
    expect(environment('OPENAI_API_KEY')).toBe('sk-2');
    expect(environment('OTHER_KEY')).toBeUndefined();
  });

  it('puts the passwords of files into the addresses', async () => {
    await using folder = await temporaryDirectory();
    await writeFile(join(folder.path, 'password'), 'p@ss\n');
    const REDIS_PASSWORD_FILE = join(folder.path, 'password');
    const database = { DATABASE_URL: 'postgres://concierge@postgres/concierge', DATABASE_PASSWORD: 'two' };
    expect(readConfig({ ...least, ...database, REDIS_PASSWORD_FILE, DATABASE_POOL: '7' })).toMatchObject({
      redisUrl: 'redis://:p%40ss@127.0.0.1:6379',
      databaseUrl: 'postgres://concierge:two@postgres/concierge',
      databasePool: 7,
    });
  });

  it('chooses the sandbox itself unless configured otherwise', () => {
    expect(readConfig(least).sandbox).toEqual({ kind: 'auto', image: 'concierge-sandbox', runtime: undefined, hostDataDir: undefined });
    const given = { SANDBOX: 'docker', SANDBOX_IMAGE: 'registry.example/agents:7', SANDBOX_RUNTIME: 'runsc', HOST_DATA_DIR: '/srv/data' };
    expect(readConfig({ ...least, ...given }).sandbox).toEqual({
      kind: 'docker',
      image: 'registry.example/agents:7',
      runtime: 'runsc',
      hostDataDir: '/srv/data',
    });
  });

  it('puts nothing in the place of a runtime that was named', () => {
    expect(readConfig({ ...least, SANDBOX_RUNTIME: 'runsc' }).sandbox.kind).toBe('docker');
  });

  it('knows where to search the web only when configured', () => {
    expect(readConfig(least).webSearch).toBeUndefined();
    expect(readConfig({ ...least, WEB_SEARCH_PROVIDER: 'brave', WEB_SEARCH_KEY: 'secret' }).webSearch).toEqual({
      provider: 'brave',
      url: undefined,
      key: 'secret',
    });
    const searxng = { WEB_SEARCH_PROVIDER: 'searxng', WEB_SEARCH_URL: 'http://searxng:8080' };
    expect(readConfig({ ...least, ...searxng }).webSearch).toMatchObject({ provider: 'searxng', url: 'http://searxng:8080' });
  });

  it.each([
    [{ WEB_SEARCH_PROVIDER: 'tavily' }, 'WEB_SEARCH_KEY: is required for tavily (not set)'],
    [{ WEB_SEARCH_PROVIDER: 'searxng' }, 'WEB_SEARCH_URL: is required: SearXNG has no address of its own (not set)'],
    [
      { WEB_SEARCH_URL: 'ftp://x', WEB_SEARCH_PROVIDER: 'brave' },
      'WEB_SEARCH_URL: must be an http:// or https:// address (given: "ftp://x")',
    ],
  ])('refuses a web search that cannot work: %j', (given, problem) => {
    expect(readProblems({ ...least, ...given })).toContain(problem);
  });

  it('opens what is not public only where it is listed, host and port', () => {
    expect(readConfig(least).outboundAllow).toEqual([]);
    expect(readConfig({ ...least, OUTBOUND_ALLOW: 'intranet:8080, 127.0.0.1:9000 [::1]:443' }).outboundAllow).toEqual([
      'intranet:8080',
      '127.0.0.1:9000',
      '[::1]:443',
    ]);
    expect(readProblems({ ...least, OUTBOUND_ALLOW: 'intranet:8080,10.0.0.0/8' })).toEqual([
      'OUTBOUND_ALLOW.1: must be a list of host:port (given: "intranet:8080,10.0.0.0/8")',
    ]);
  });
});
