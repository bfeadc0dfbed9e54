import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { chooseProviders } from './choose-models.ts';

const log = createLog({ service: 'test', level: 'silent' });
const file = {
  default: 'own/model',
  providers: { own: { baseUrl: 'http://127.0.0.1:1/v1', apiKeyEnv: 'OWN_KEY', models: {} } },
};

describe('choosing the model', () => {
  it('takes the providers file when it names a key that is there', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    await writeFile(path, JSON.stringify(file));
    const chosen = await chooseProviders(path, (name) => (name === 'OWN_KEY' ? 'secret' : undefined), log);
    expect(chosen.demo).toBeUndefined();
    expect(chosen.providers.default).toBe('own/model');
  });

  it.each([
    ['is missing', undefined],
    ['names no key that is there', JSON.stringify(file)],
  ])('falls back to the demonstration when the file %s', async (_case, text) => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    if (text !== undefined) await writeFile(path, text);
    const chosen = await chooseProviders(path, () => undefined, log);
    expect(chosen.providers.default).toBe('demo/demo');
    expect(chosen.demo).toBeDefined();
    await chosen.demo?.stop(0);
  });

  it('does not start over a file that is broken', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'providers.json');
    await writeFile(path, '{');
    await expect(chooseProviders(path, () => undefined, log)).rejects.toThrow('is not valid JSON');
  });
});
