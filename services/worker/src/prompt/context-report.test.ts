import { describe, expect, it } from '@jest/globals';
import { allTools, ToolRegistry } from '@concierge/agent';
import { ModelFacts, ProvidersFile, toolsOfAgent, toolTokens } from '@concierge/contract';
import { resolveProviders } from '@concierge/model';
import { contextBudget, crowdedModels } from './context-report.ts';

describe('what tools take of a prompt', () => {
  it.each(['admin', 'cs'] as const)('is known to the gateway, about, for agents of %s', (access) => {
    const tools = new ToolRegistry(allTools, access, undefined);
    const tokens = contextBudget(ModelFacts.parse({}), '', tools).overheadTokens();
    const about = toolTokens(access, toolsOfAgent(access, undefined).length);
    expect(Math.abs(about - tokens) / tokens).toBeLessThan(0.15);
  });
});

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
