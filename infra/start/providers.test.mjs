import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProvidersFile } from '@concierge/contract';
import { hasUsableKey as workerDecides, resolveProviders } from '@concierge/model';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { chooseModel, hasUsableKey } from './providers.mjs';

const provider = (key) => ({ baseUrl: 'https://models.example/v1', ...key });

const cases = [
  ['a variable that is not set', { a: provider({ apiKeyEnv: 'UNSET' }) }, false],
  ['a variable that is empty', { a: provider({ apiKeyEnv: 'EMPTY' }) }, false],
  ['a variable that is set', { a: provider({ apiKeyEnv: 'SET' }) }, true],
  ['a key in the file', { a: provider({ apiKey: 'k' }) }, true],
  ['no key, because none is needed', { a: provider({}) }, true],
  ['only a fallback with a key', { a: provider({ apiKeyEnv: 'UNSET' }), b: provider({ apiKey: 'k' }) }, true],
  ['a key of a provider that is not used', { a: provider({ apiKeyEnv: 'UNSET' }), c: provider({ apiKey: 'k' }) }, false],
];

describe('which model answers', () => {
  let folder;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'concierge-providers-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it.each(cases)('is announced as the worker decides it: %s', (_, providers, usable) => {
    const env = { SET: 'k', EMPTY: ' ' };
    const file = ProvidersFile.parse({ default: 'a/one', fallbacks: ['b/two'], providers });
    expect(hasUsableKey(file, env)).toBe(usable);
    expect(workerDecides(resolveProviders(file, (name) => env[name]))).toBe(usable);
  });

  it('makes a providers file that only its owner can read, and names the variable it waits for', () => {
    const { providersFile, description } = chooseModel(folder, {});
    expect(statSync(providersFile).mode % 0o1000).toBe(0o600);
    expect(ProvidersFile.parse(JSON.parse(readFileSync(providersFile, 'utf8'))).default).toBe('openai/gpt-5-mini');
    expect(description).toContain('demo model');
    expect(description).toContain('OPENAI_API_KEY');
    expect(chooseModel(folder, { OPENAI_API_KEY: 'k' }).description).toContain('openai/gpt-5-mini');
  });

  it('starts in production only with a key, or with DEMO_MODEL=1', () => {
    const production = { NODE_ENV: 'production' };
    expect(() => chooseModel(folder, production)).toThrow(/No model can answer in production.*OPENAI_API_KEY.*DEMO_MODEL=1/u);
    expect(chooseModel(folder, { ...production, DEMO_MODEL: '1' }).description).toContain('demo model');
    expect(chooseModel(folder, { ...production, OPENAI_API_KEY: 'k' }).description).toContain('openai/gpt-5-mini');
  });

  it('reports in one line what is wrong with the file', () => {
    writeFileSync(join(folder, 'providers.json'), '{ "default": ');
    expect(() => chooseModel(folder, {})).toThrow(/providers\.json cannot be read/u);
    expect(() => chooseModel(folder, { PROVIDERS_FILE: join(folder, 'other.json') })).toThrow(/does not exist/u);
  });
});
