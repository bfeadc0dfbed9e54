import { describe, expect, it } from '@jest/globals';
import {
  AgentFrontMatter,
  agentRules,
  builtInAgents,
  lowestAuthority,
  toolsOfAgent,
  type AgentDefinition,
  csToolNames,
  toolNames,
  toolsHandedOn,
} from './agent.ts';
import { limits } from '../limits.ts';

const agent = (facts: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name: 'sales',
  description: 'Sells',
  access: 'admin',
  ...facts,
});

describe('the front matter of an agent', () => {
  it('needs a description and nothing else; it is private unless it states otherwise', () => {
    expect(AgentFrontMatter.parse({ description: ' Sells ' })).toEqual({ description: 'Sells', public: false });
  });

  it('takes our tools and those of attached servers', () => {
    const tools = ['read', 'mcp__shop__find_order', 'mcp__shop__*'];
    expect(AgentFrontMatter.parse({ description: 'x', tools }).tools).toEqual(tools);
  });

  it.each([
    {},
    { description: '' },
    { description: 'x', tool: ['read'] },
    { description: 'x', tools: ['raed'] },
    { description: 'x', tools: 'read' },
    { description: 'x', model: 'gpt' },
    { description: 'x', maxTurns: 0 },
    { description: 'x', maxTurns: limits.maxTurnsMax + 1 },
    { description: 'x', public: 'yes' },
    { description: 'x'.repeat(limits.agentDescriptionMaxCharacters + 1) },
  ])('refuses %j', (data) => {
    expect(AgentFrontMatter.safeParse(data).success).toBe(false);
  });
});

describe('the rules of an agent', () => {
  it('are the defaults where no file sets them', () => {
    expect(agentRules(agent(), {})).toEqual({ allow: undefined, model: undefined, maxTurns: limits.maxTurnsDefault });
  });

  it('are narrowed by tenant.json and never widened', () => {
    const own = agent({ tools: ['read', 'write', 'status'], maxTurns: 8 });
    const settings = (tools: string[], maxTurns: number): Parameters<typeof agentRules>[1] => ({ agents: { sales: { tools, maxTurns } } });
    expect(agentRules(own, settings(['write', 'bash'], 30))).toMatchObject({ allow: ['write'], maxTurns: 8 });
    expect(agentRules(own, settings([], 3))).toMatchObject({ allow: [], maxTurns: 3 });
    expect(agentRules(agent(), settings(['bash'], 30))).toMatchObject({ allow: ['bash'], maxTurns: 30 });
    expect(agentRules(own, { agents: { other: { tools: ['bash'] } } }).allow).toEqual(own.tools);
  });

  it('take the model set nearest to the agent, tenant.json first', () => {
    const model = (given: string | undefined, settings: Parameters<typeof agentRules>[1]): string | undefined =>
      agentRules(agent({ model: given }), settings).model;
    expect(model(undefined, { model: 'a/all' })).toBe('a/all');
    expect(model('a/file', { model: 'a/all' })).toBe('a/file');
    expect(model('a/file', { model: 'a/all', agents: { sales: { model: 'a/one' } } })).toBe('a/one');
  });
});

describe('the tools of an agent', () => {
  it('are every tool for the owner’s, and for a public one those that strangers may be given', () => {
    expect(builtInAgents.map(({ name, access }) => [name, toolsOfAgent(access, undefined).length])).toEqual([
      ['admin', toolNames.length],
      ['cs', csToolNames.length],
    ]);
  });

  it('are at most those of its list, attached ones among them', () => {
    expect(toolsOfAgent('cs', ['bash', 'read', 'shop__find'])).toEqual(['read', 'shop__find']);
    expect(toolsOfAgent('admin', [])).toEqual([]);
  });
});

describe('what a turn hands on', () => {
  const all = [...toolNames];

  it('is never what sends messages or makes things happen later', () => {
    const handed = toolsHandedOn(all, 1);
    expect(all.filter((name) => !handed.includes(name))).toEqual(['message', 'reply', 'channels', 'handoff', 'cron']);
  });

  it('is no further sub-agents at the depth where they end', () => {
    expect(toolsHandedOn(all, limits.subagentDepthMax - 1)).toContain('subagents');
    expect(toolsHandedOn(all, limits.subagentDepthMax)).not.toContain('subagents');
  });

  it('is nothing that it does not have itself', () => {
    expect(toolsHandedOn(['read', 'shop__find'], 1)).toEqual(['read', 'shop__find']);
  });

  it('is the least of all authorities', () => {
    expect([lowestAuthority('admin', 'admin'), lowestAuthority('admin', 'cs'), lowestAuthority('cs')]).toEqual(['admin', 'cs', 'cs']);
  });
});
