import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@concierge/runtime';
import { readConfig } from './config.ts';

const least = { REDIS_URL: 'redis://127.0.0.1:6379', KEY_SECRET: 'k'.repeat(32), DATA_DIR: '/srv/concierge' };

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

  it('gives one tenant half of the worker unless told otherwise', () => {
    expect(readConfig({ ...least, WORKER_CONCURRENCY: '7' }).tenantShare).toBe(4);
    expect(readConfig({ ...least, WORKER_CONCURRENCY: '8', TENANT_SHARE: '8' }).tenantShare).toBe(8);
  });

  it('names every bad value at once', () => {
    const problemsOf = (env: NodeJS.ProcessEnv): readonly string[] => {
      try {
        readConfig(env);
        return [];
      } catch (error) {
        return error instanceof ConfigError ? error.problems : [String(error)];
      }
    };
    const problems = problemsOf({ ...least, WORKER_CONCURRENCY: 'many', METRICS_PORT: '70000', KEY_SECRET: '' });
    expect(problems.map((line) => line.split(':', 1).join('')).toSorted((one, other) => one.localeCompare(other))).toEqual([
      'KEY_SECRET',
      'METRICS_PORT',
      'WORKER_CONCURRENCY',
    ]);
    expect(problemsOf({ ...least, WORKER_CONCURRENCY: '2', TENANT_SHARE: '3' })).toEqual([
      'TENANT_SHARE: must not be more than WORKER_CONCURRENCY',
    ]);
  });

  it('looks provider keys up in the environment it was given', () => {
    expect(readConfig({ ...least, OPENAI_API_KEY: 'sk-1' }).environment('OPENAI_API_KEY')).toBe('sk-1');
  });
});
