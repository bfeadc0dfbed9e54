import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import { startDemoModel, type DemoModel } from '../src/demo/index.ts';
import { demoProviders, type ModelMessage, type ModelTool } from '../src/index.ts';
import { Models } from '../src/openai/index.ts';
import { findEnd, collectEvents, neverAborted } from './provider-fixture.ts';

const tools: ModelTool[] = ['list_files', 'read', 'status', 'load_skill'].map((name) => ({
  name,
  description: '',
  parameters: { type: 'object' },
}));
const system =
  '# Identity\n\n- **Name:** Juniper\n\n# Skills\n\nProcedures.\n\n- opening-hours: When we are open\n\n# How messages reach you\n\nText.';

let demo: DemoModel;
let models: Models;
beforeAll(async () => {
  demo = await startDemoModel({ wordMs: 0 });
  models = new Models({ providers: demoProviders(demo.url) });
});
afterAll(async () => {
  models.close();
  await demo.close();
});

async function reply(messages: ModelMessage[], offered = tools) {
  return findEnd(await collectEvents(models.forRef().stream({ system, messages, tools: offered }, neverAborted)));
}

const says = (content: string): ModelMessage => ({ role: 'user', content });

describe('the demo model', () => {
  it('introduces itself as what it is, and explains how to get a real one', async () => {
    const end = await reply([says('<context>\nCurrent time: status, read FILE.md\n</context>\n\nHello!')]);
    expect(end).toMatchObject({ toolCalls: [], finishReason: 'stop', model: 'demo/demo', usageEstimated: false });
    expect(end.text).toMatch(/^\*\*Demo model:\*\*/u);
    for (const word of ['Juniper', 'providers.json', 'apiKeyEnv', 'opening-hours', 'read IDENTITY.md']) expect(end.text).toContain(word);
    expect(end.text).not.toContain('remember that');
  });

  it('calls a tool when asked, and reports what came back', async () => {
    const question = says('What can you do? Show me my files.');
    const first = await reply([question]);
    expect(first).toMatchObject({ finishReason: 'tool_calls', text: expect.stringContaining('Demo model:') });
    expect(first.toolCalls).toEqual([{ id: expect.any(String), name: 'list_files', arguments: '{}' }]);
    const second = await reply([
      question,
      { role: 'assistant', text: first.text, toolCalls: first.toolCalls },
      { role: 'tool', callId: first.toolCalls[0]?.id ?? '', output: 'IDENTITY.md (12 bytes)\nskills/' },
    ]);
    expect(second.toolCalls).toEqual([]);
    for (const word of ['Demo model:', '`list_files` answered', 'IDENTITY.md (12 bytes)', 'What I can show you', 'providers.json'])
      expect(second.text).toContain(word);
  });

  it('calls no tool that was not offered', async () => {
    const end = await reply([says('/tool bash {"command":"id"}')]);
    expect(end.toolCalls).toEqual([]);
    expect(end.text).toContain('not offered');
  });

  it('does not introduce itself twice', async () => {
    const end = await reply([says('Hello'), { role: 'assistant', text: 'Hi', toolCalls: [] }, says('Tell me a joke')]);
    expect(end.text).toContain('“Tell me a joke”');
    expect(end.text).not.toContain('What I can show you');
  });

  it('answers other clients of the protocol', async () => {
    const client = new OpenAI({ apiKey: 'none', baseURL: demo.url, maxRetries: 0 });
    const whole = await client.chat.completions.create({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] });
    expect(whole.choices[0]?.message.content).toContain('Demo model:');
    const streamed = await client.chat.completions.create({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }], stream: true });
    let text = '';
    for await (const chunk of streamed) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(whole.choices[0]?.message.content);
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['demo']);
    await expect(
      client.chat.completions.create({ model: 'demo', messages: [], tools: [{ type: 'custom', custom: { name: 'x' } }] }),
    ).rejects.toMatchObject({ status: 400 });
  });

  it('embeds texts that share words near each other', async () => {
    const client = new OpenAI({ apiKey: 'none', baseURL: demo.url, maxRetries: 0 });
    const { data } = await client.embeddings.create({
      model: 'demo',
      input: ['opening hours of the shop', 'the shop has opening hours', 'a recipe for soup'],
    });
    const [a = [], b = [], c = []] = data.map(({ embedding }) => embedding);
    const near = (left: number[], right: number[]): number => left.reduce((sum, value, index) => sum + value * (right[index] ?? 0), 0);
    expect(near(a, a)).toBeCloseTo(1);
    expect(near(a, b)).toBeGreaterThan(near(a, c));
  });
});
