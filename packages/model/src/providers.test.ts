import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ProvidersFileError, demoProviders, findModel, hasUsableKey, loadProviders, type Providers } from './providers.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'providers-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function load(content: unknown, env: Record<string, string> = {}): Promise<Providers | undefined> {
  const path = join(folder, 'providers.json');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return loadProviders(path, (name) => env[name]);
}

const openai = { baseUrl: 'https://api.openai.com/v1', apiKeyEnv: 'OPENAI_API_KEY', models: { 'gpt-5-mini': { contextWindow: 272_000 } } };

describe('a providers file', () => {
  it('may be missing', async () => {
    expect(await loadProviders(join(folder, 'none.json'), () => undefined)).toBeUndefined();
    expect(hasUsableKey(undefined)).toBe(false);
  });

  it('makes a provider usable whose key is in the environment', async () => {
    const providers = await load({ default: 'openai/gpt-5-mini', providers: { openai } }, { OPENAI_API_KEY: ' sk-1\n' });
    expect(hasUsableKey(providers)).toBe(true);
    expect(providers?.usable.get('openai')).toMatchObject({ apiKey: 'sk-1' });
  });

  it.each([[{}], [{ OPENAI_API_KEY: '' }]])('names the variable that is not set (%j)', async (env) => {
    const providers = await load({ default: 'openai/gpt-5-mini', providers: { openai } }, env);
    expect(hasUsableKey(providers)).toBe(false);
    expect(providers?.unusable).toEqual(['openai: the environment variable OPENAI_API_KEY is not set']);
  });

  it('may name a provider that needs no key, and a fallback is enough', async () => {
    const local = { baseUrl: 'http://localhost:11434/v1' };
    const providers = await load({ default: 'openai/gpt-5-mini', fallbacks: ['local/llama'], providers: { openai, local } });
    expect(hasUsableKey(providers)).toBe(true);
    expect(providers?.usable.get('local')?.apiKey).toBeNull();
  });

  it('that is wrong is refused with every fault at once, and no key is quoted', async () => {
    const error = await load({ default: 'gpt', providers: { openai: { baseUrl: 'nowhere', apiKey: 7 } }, extra: 1 }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(ProvidersFileError);
    expect(error).toMatchObject({
      problems: [
        expect.stringContaining('default'),
        expect.stringContaining('baseUrl'),
        expect.stringContaining('apiKey'),
        expect.stringContaining('extra'),
      ],
    });
    await expect(load('{"providers": {"x": {"apiKey": "sk-secret" oops')).rejects.toThrow(/^(?!.*secret).*is not valid JSON/u);
  });

  it('is refused when the models that answer everybody are not in it, each of them named', async () => {
    const providers = { openai, local: { baseUrl: 'http://localhost:11434/v1' } };
    expect(await load({ default: 'local/any', fallbacks: ['openai/gpt-5-mini'], providers })).toBeDefined();
    const file = { default: 'openai/gpt-5-mimi', fallbacks: ['missing/x'], providers };
    await expect(load(file)).rejects.toMatchObject({
      problems: [
        'default: openai/gpt-5-mimi is not among the models of openai (models: gpt-5-mini)',
        'fallbacks.0: missing/x is a model of no provider here (providers: openai, local)',
      ],
    });
  });

  it('gives the facts of its models, and defaults for others of the same provider', async () => {
    const providers = await load({ default: 'openai/gpt-5-mini', providers: { openai } }, { OPENAI_API_KEY: 'k' });
    expect(providers).toBeDefined();
    if (providers === undefined) return;
    expect(findModel(providers, 'openai/gpt-5-mini')).toMatchObject({ listed: true, facts: { contextWindow: 272_000 } });
    expect(findModel(providers, 'openai/ft:gpt/x')).toMatchObject({ listed: false, name: 'ft:gpt/x', facts: { contextWindow: 128_000 } });
    expect(findModel(providers, 'openai/toString')).toMatchObject({ listed: false });
    expect(findModel(providers, 'other/x')).toBeUndefined();
  });

  it('may leave the key of the embeddings to their provider', async () => {
    const embeddings = { model: 'openai/text-embedding-3-small' };
    const file = { default: 'openai/gpt-5-mini', providers: { openai }, embeddings };
    const model = { ref: embeddings.model, name: 'text-embedding-3-small', baseUrl: openai.baseUrl };
    expect((await load(file, { OPENAI_API_KEY: 'k' }))?.embeddings).toEqual({ ...model, apiKey: 'k' });
    expect((await load({ ...file, embeddings: { ...embeddings, apiKeyEnv: 'E' } }, { E: 'own' }))?.embeddings).toEqual({
      ...model,
      apiKey: 'own',
    });
    expect((await load({ ...file, embeddings: { ...embeddings, apiKey: 'own' } }))?.embeddings).toEqual({ ...model, apiKey: 'own' });
    expect((await load(file))?.embeddings).toBeNull();
    expect((await load({ ...file, embeddings: { model: 'nobody/m', apiKey: 'own' } }))?.embeddings).toBeNull();
  });
});

describe('demoProviders', () => {
  it('is usable without a key', () => {
    const providers = demoProviders('http://127.0.0.1:1/v1');
    expect(hasUsableKey(providers)).toBe(true);
    expect(findModel(providers, providers.default)).toMatchObject({ name: 'demo', listed: true });
  });
});
