import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ProvidersFile } from '@concierge/contract';
import { callTools, finish, raw, say, serveRequests, startScriptedModel, status, usage, type ScriptedModel } from '@concierge/testing';
import { resolveProviders, type ModelEvent, type ModelRequest, type ModelTool } from '../src/index.ts';
import { Models } from '../src/openai/index.ts';
import { API_KEY, asking, findEnd, collectEvents, heard, modelsOver, neverAborted } from './provider-fixture.ts';

const readTool: ModelTool = {
  name: 'read',
  description: 'Reads a file.',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
};

let server: ScriptedModel;
let models: Models;

beforeAll(async () => {
  server = await startScriptedModel();
  ({ models } = modelsOver({ urls: [server.url], facts: { price: { input: 2, output: 10, cachedInput: 0.5 } } }));
});
afterEach(() => {
  server.requests.length = 0;
});
afterAll(async () => {
  models.close();
  await server.close();
});

async function reply(request: ModelRequest = asking('hi')): Promise<ModelEvent[]> {
  return collectEvents(models.forRef().stream(request, neverAborted));
}

describe('a reply of the provider', () => {
  it('is streamed as text and ends with the whole of it', async () => {
    server.enqueue([say('Grüß Gott, 世界 👋', { chunks: 5, delayMs: 3 })]);
    const events = await reply();
    expect(heard(events)).toBe('Grüß Gott, 世界 👋');
    expect(events.filter((event) => event.type === 'text').length).toBeGreaterThan(1);
    expect(findEnd(events)).toMatchObject({ text: 'Grüß Gott, 世界 👋', toolCalls: [], finishReason: 'stop', model: 'p0/m' });
  });

  it('gives deltas that arrive together as one event', async () => {
    server.enqueue([say('word '.repeat(20), { chunks: 20 })]);
    const events = await reply();
    expect(events.map((event) => event.type)).toEqual(['text', 'end']);
  });

  it('puts parallel tool calls together from their deltas, arguments as written', async () => {
    server.enqueue([
      say('I will look. '),
      callTools([
        { name: 'read', args: { path: 'a.md' }, id: 'call_a' },
        { name: 'read', args: '{"path": broken', id: 'call_b' },
        { name: 'status', args: '' },
      ]),
    ]);
    const end = findEnd(await reply(asking('look', { tools: [readTool] })));
    expect(end.finishReason).toBe('tool_calls');
    expect(end.toolCalls).toEqual([
      { id: 'call_a', name: 'read', arguments: '{"path":"a.md"}' },
      { id: 'call_b', name: 'read', arguments: '{"path": broken' },
      { id: expect.stringMatching(/^call_/u), name: 'status', arguments: '' },
    ]);
  });

  it('gives calls that came without an id one of their own', async () => {
    const call = (index: number): string => `{"index":${String(index)},"function":{"name":"read","arguments":"{}"}}`;
    server.enqueue([raw(`data: {"choices":[{"index":0,"delta":{"tool_calls":[${call(0)},${call(1)}]}}]}\n\n`)]);
    const { toolCalls } = findEnd(await reply());
    expect(toolCalls).toHaveLength(2);
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(2);
    expect(toolCalls.every(({ id }) => id.length > 8)).toBe(true);
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
    ['model_length', 'length'],
    ['eos', 'stop'],
  ] as const)('that finishes with %s ends with %s', async (reason, expected) => {
    server.enqueue([say('text'), finish(reason)]);
    expect(findEnd(await reply()).finishReason).toBe(expected);
  });

  it('has tool calls to run whatever word the provider finished with, except when it was cut', async () => {
    const call = callTools([{ name: 'read', args: {} }]);
    server.enqueue([call, finish('function_call')], [call, finish('stop')], [call, finish('length')], [say('x'), finish('tool_calls')]);
    const reasons = [];
    for (let round = 0; round < 4; round += 1) reasons.push(findEnd(await reply()).finishReason);
    expect(reasons).toEqual(['tool_calls', 'tool_calls', 'length', 'stop']);
  });

  it('carries the usage of the provider and its cost', async () => {
    server.enqueue([say('x'), usage({ promptTokens: 1000, completionTokens: 200, cachedTokens: 400 })]);
    const end = findEnd(await reply());
    expect(end.usageEstimated).toBe(false);
    expect(end.usage).toEqual({ model: 'p0/m', calls: 1, inputTokens: 1000, outputTokens: 200, cachedInputTokens: 400, costUsd: 0.0034 });
  });

  it('has estimated usage when the provider gives none', async () => {
    server.enqueue([say('one two three four five six'), usage(null)]);
    const end = findEnd(await reply(asking('A question of some length, say a dozen words or so in all.')));
    expect(end.usageEstimated).toBe(true);
    expect(end.usage.inputTokens).toBeGreaterThan(10);
    expect(end.usage.inputTokens).toBeLessThan(40);
    expect(end.usage.outputTokens).toBe(6);
  });

  it('may be read although the provider neither ends the last event nor marks the reply as done', async () => {
    server.enqueue([
      raw('data: {"choices":[{"index":0,"delta":{"content":"whole"},"finish_reason":"stop"}]}\r\n\r\n: ping\r\n\r\n'),
      finish('stop'),
    ]);
    expect(findEnd(await reply()).text).toBe('whole');
  });
});

describe('a request to the provider', () => {
  it('carries system prompt, history, tools and the key', async () => {
    await reply({
      system: 'Be brief.',
      messages: [
        { role: 'user', content: 'look' },
        { role: 'assistant', text: 'I look.', toolCalls: [{ id: 'c1', name: 'functions.read', arguments: '{"path":"a"}' }] },
        { role: 'tool', callId: 'c1', output: 'content \uD800' },
        { role: 'assistant', text: '', toolCalls: [] },
        { role: 'assistant', text: '', toolCalls: [{ id: 'c2', name: 'read', arguments: 'no json' }] },
        { role: 'tool', callId: 'c2', output: 'bad arguments' },
      ],
      tools: [readTool],
      conversationId: 'abc',
    });
    const [request] = server.requests;
    expect(request?.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(request?.raw).toEqual({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 8192,
      tools: [{ type: 'function', function: readTool }],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'look' },
        {
          role: 'assistant',
          content: 'I look.',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'functions_read', arguments: '{"path":"a"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'content \uFFFD' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'c2', type: 'function', function: { name: 'read', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c2', content: 'bad arguments' },
      ],
    });
  });

  it('carries images as data URLs', async () => {
    await reply(
      asking('', {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'what is this?' },
              { type: 'image', mediaType: 'image/png', base64: 'iVBO' },
            ],
          },
        ],
      }),
    );
    expect(server.requests[0]?.raw).toMatchObject({
      messages: [
        {},
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          ],
        },
      ],
    });
  });

  it('goes to the path below the base URL, with its query, and carries a key only where there is one', async () => {
    const seen: Request[] = [];
    await using other = await serveRequests((request) => {
      seen.push(request);
      return new Response('data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n');
    });
    const keyless = { baseUrl: `${other.url}/?api-version=1`, models: { m: {} } };
    const file = ProvidersFile.parse({ default: 'keyless/m', providers: { keyless } });
    const lone = new Models({ providers: resolveProviders(file, () => undefined) });
    await collectEvents(lone.forRef().stream(asking('hi'), neverAborted));
    lone.close();
    expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([`POST ${other.url}/chat/completions?api-version=1`]);
    expect(seen[0]?.headers.has('authorization')).toBe(false);
    expect(seen[0]?.headers.get('content-type')).toBe('application/json');
    expect(await seen[0]?.json()).toMatchObject({ model: 'm', messages: [{ role: 'system' }, { role: 'user', content: 'hi' }] });
  });

  it('is written anew for each model, with what has changed since the one before', async () => {
    const refusing = await startScriptedModel();
    refusing.enqueue([status(401)]);
    const { models: line } = modelsOver({
      urls: [refusing.url, server.url],
      facts: { images: false },
      firstFacts: { images: true, maxOutputTokens: 100 },
    });
    const image = { type: 'image', mediaType: 'image/png', base64: 'iVBO' } as const;
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'look' }, image] }] as const;
    const request = { system: 'Be brief.', messages, tools: [readTool] };
    await collectEvents(line.forRef().stream(request, neverAborted));
    await collectEvents(
      line.forRef('p1/m').stream({ ...request, system: 'Be long.', tools: [{ ...readTool, name: 'write' }] }, neverAborted),
    );
    line.close();
    await refusing.close();
    const [refused] = refusing.requests;
    const [answered, changed] = server.requests;
    const shown = {
      role: 'user',
      content: [
        { type: 'text', text: 'look' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
      ],
    };
    const named = {
      role: 'user',
      content: [
        { type: 'text', text: 'look' },
        { type: 'text', text: expect.stringContaining('cannot see') },
      ],
    };
    expect(refused?.raw).toMatchObject({
      max_tokens: 100,
      messages: [{ content: 'Be brief.' }, shown],
      tools: [{ function: { name: 'read' } }],
    });
    expect(answered?.raw).toMatchObject({
      max_tokens: 8192,
      messages: [{ content: 'Be brief.' }, named],
      tools: [{ function: { name: 'read' } }],
    });
    expect(changed?.raw).toMatchObject({ messages: [{ content: 'Be long.' }, named], tools: [{ function: { name: 'write' } }] });
  });

  it('goes over the connection of the one before', async () => {
    for (let round = 0; round < 5; round += 1) await reply();
    expect(server.connections).toBeLessThanOrEqual(2);
  });
});

describe.each(['gemini', 'deepseek'] as const)('a provider that wants its thoughts back, as %s does', (thinksAs) => {
  it('goes on after a tool call that has them, and refuses one without them', async () => {
    await using thinking = await startScriptedModel({ thinksAs });
    const { models: asked } = modelsOver({ urls: [thinking.url] });
    thinking.enqueue([callTools([{ name: 'read', args: {} }])], [say('Done.')]);
    const called = findEnd(await collectEvents(asked.forRef().stream(asking('look', { tools: [readTool] }), neverAborted)));
    const { text, toolCalls, reasoning, model } = called;
    const goOn = (by: string) => {
      const results = toolCalls.map(({ id }) => ({ role: 'tool', callId: id, output: 'ok' }) as const);
      const messages = [...asking('look').messages, { role: 'assistant', text, toolCalls, reasoning, model: by } as const, ...results];
      return collectEvents(asked.forRef().stream(asking('look', { messages }), neverAborted));
    };
    await expect(goOn('p1/m')).rejects.toMatchObject({ kind: 'rejected', status: 400 });
    expect(heard(await goOn(model))).toBe('Done.');
    asked.close();
  });
});
