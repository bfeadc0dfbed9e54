import { describe, expect, it } from '@jest/globals';
import { ProvidersFile } from '@concierge/contract';
import { resolveProviders } from '@concierge/model';
import { crowdedModels } from './context-figures.ts';

describe('models whose window the tools nearly fill', () => {
  it('are named at the start, and none that has room', () => {
    const models = { small: { contextWindow: 8000 }, large: { contextWindow: 128_000 } };
    const file = ProvidersFile.parse({
      default: 'p/small',
      fallbacks: ['p/large'],
      providers: { p: { baseUrl: 'http://127.0.0.1/v1', models } },
    });
    const [found, ...others] = crowdedModels(resolveProviders(file, () => undefined));
    expect(found).toMatchObject({ model: 'p/small', contextWindow: 8000 });
    expect(found?.toolTokens).toBeGreaterThan(3000);
    expect(others).toEqual([]);
  });
});
