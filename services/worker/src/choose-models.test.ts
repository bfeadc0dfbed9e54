import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ConfigError, createLog } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { chooseProviders, type ModelSources } from './choose-models.ts';

const log = createLog({ service: 'test', level: 'silent' });
const file = {
  default: 'own/model',
  providers: { own: { baseUrl: 'http://127.0.0.1:1/v1', apiKeyEnv: 'OWN_KEY', models: {} } },
};

const sources = (providersFile: string, more: Partial<ModelSources> = {}): ModelSources => ({
  providersFile,
  mayUseDemoModel: true,
  environment: () => undefined,
  ...more,
});

describe('choosing the model', () => {
  it('takes the providers file when it names a key that is there', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    await writeFile(path, JSON.stringify(file));
    const environment = (name: string): string | undefined => (name === 'OWN_KEY' ? 'secret' : undefined);
    const chosen = await chooseProviders(sources(path, { environment, mayUseDemoModel: false }), log);
    expect(chosen.demo).toBeUndefined();
    expect(chosen.providers.default).toBe('own/model');
  });

  const withoutKey = [
    ['is missing', undefined, 'does not exist'],
    [
      'names no key that is there',
      JSON.stringify(file),
      'names no usable key for own/model (own: the environment variable OWN_KEY is not set)',
    ],
  ] as const;

  it.each(withoutKey)('falls back to the demonstration when the file %s', async (_case, text, _missing) => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    if (text !== undefined) await writeFile(path, text);
    const chosen = await chooseProviders(sources(path), log);
    expect(chosen.providers.default).toBe('demo/demo');
    expect(chosen.demo).toBeDefined();
    await chosen.demo?.[Symbol.asyncDispose]();
  });

  it.each(withoutKey)(
    'does not start in production when the file %s, and names in one line what is missing',
    async (_case, text, missing) => {
      await using folder = await temporaryDirectory();
      const path = join(folder.path, 'providers.json');
      if (text !== undefined) await writeFile(path, text);
      const refusal = chooseProviders(sources(path, { mayUseDemoModel: false }), log);
      await expect(refusal).rejects.toMatchObject({
        problems: [`PROVIDERS_FILE: ${path} ${missing}; with DEMO_MODEL=1 the built-in demo model answers in production, too`],
      });
      await expect(refusal).rejects.toBeInstanceOf(ConfigError);
    },
  );

  it('does not start over a file that is broken, or that has no such default model', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    await writeFile(path, '{');
    await expect(chooseProviders(sources(path), log)).rejects.toMatchObject({
      problems: [`PROVIDERS_FILE: ${path}: is not valid JSON`],
    });
    await writeFile(path, JSON.stringify({ ...file, default: 'nobody/model' }));
    await expect(chooseProviders(sources(path), log)).rejects.toMatchObject({
      problems: [`PROVIDERS_FILE: ${path}: default: nobody/model is a model of no provider here (providers: own)`],
    });
  });
});
