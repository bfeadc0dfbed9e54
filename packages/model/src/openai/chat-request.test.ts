import { describe, expect, it } from '@jest/globals';
import { ProvidersFile } from '@concierge/contract';
import { z } from 'zod';
import type { AssistantModelMessage, ModelMessage, ModelRequest, ModelTool } from '../model.ts';
import { findModel, resolveProviders, type UsableModel } from '../providers.ts';
import { ChatRequests } from './chat-request.ts';

interface ModelOptions {
  readonly facts?: Record<string, unknown>;
  readonly name?: string;
}

function openModel(baseUrl: string, { facts = { maxOutputTokens: 1000 }, name = 'm' }: ModelOptions = {}): UsableModel {
  const file = ProvidersFile.parse({ default: 'p/m', providers: { p: { baseUrl, models: { m: facts } } } });
  const model = findModel(
    resolveProviders(file, () => undefined),
    `p/${name}`,
  );
  if (model === undefined) throw new Error('no model');
  return model;
}

function bodyFor(baseUrl: string, options?: ModelOptions) {
  return read(new ChatRequests(openModel(baseUrl, options)).write(request));
}

function read(parts: readonly Buffer[]) {
  return Body.parse(JSON.parse(Buffer.concat(parts).toString()));
}

const Body = z.looseObject({ messages: z.array(z.unknown()) });

const image = { type: 'image', mediaType: 'image/png', base64: 'AA==' } as const;
const request: ModelRequest = { system: '', messages: [{ role: 'user', content: [image] }], tools: [], conversationId: 'conversation-1' };

describe('ChatRequests', () => {
  it('asks OpenAI for its own fields', () => {
    const body = bodyFor('https://api.openai.com/v1');
    expect(body).toMatchObject({
      max_completion_tokens: 1000,
      prompt_cache_key: 'conversation-1',
      stream_options: { include_usage: true },
    });
    expect(body).not.toHaveProperty('max_tokens');
  });

  it('asks compatible servers for nothing they may not know', () => {
    const body = bodyFor('https://openrouter.ai/api/v1');
    expect(body).toMatchObject({ max_tokens: 1000, stream_options: { include_usage: true } });
    expect(body).not.toHaveProperty('prompt_cache_key');
    expect(body).not.toHaveProperty('max_completion_tokens');
    expect(body).not.toHaveProperty('tools');
  });

  it('spares Mistral the stream options it refuses', () => {
    expect(bodyFor('https://api.mistral.ai/v1')).not.toHaveProperty('stream_options');
  });

  it('gives Mistral the ids of calls that it takes, and pairs stay pairs', () => {
    const ids = ['call_aGVsbG8gd29ybGQ', 'toolu_01A09q90qw90lq917835lq9', 'D681PevKs', 'call_1', 'call_2'];
    const mistral = { ...requestWithCalls(ids), system: 'Be brief.' };
    const body = CallsBody.parse(read(new ChatRequests(openModel('https://api.mistral.ai/v1')).write(mistral)));
    expect(findMistralsRefusal(body)).toBeUndefined();
    expect(listIds(body).calls).toEqual(listIds(body).results);
    expect(new Set(listIds(body).calls).size).toBe(ids.length);
    expect(listIds(body).calls[2]).toBe('D681PevKs');
    const again = CallsBody.parse(read(new ChatRequests(openModel('https://api.mistral.ai/v1')).write(requestWithCalls(ids))));
    expect(listIds(again)).toEqual(listIds(body));
    const others = CallsBody.parse(read(new ChatRequests(openModel('https://x.test/v1')).write(requestWithCalls(ids))));
    expect(listIds(others)).toEqual({ calls: ids, results: ids });
    expect(findMistralsRefusal(others)).toBe('Tool call id was call_aGVsbG8gd29ybGQ but must be a-z, A-Z, 0-9, with a length of 9.');
  });

  it('sets no output limit for a model without a description', () => {
    expect(bodyFor('https://api.openai.com/v1', { name: 'new' })).not.toHaveProperty('max_completion_tokens');
  });

  it('leaves out an empty system prompt', () => {
    expect(bodyFor('https://x.test/v1').messages).toHaveLength(1);
  });

  it('mentions an image to a model that cannot see', () => {
    expect(bodyFor('https://x.test/v1', { facts: { images: false } }).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: expect.stringContaining('cannot see images') }] },
    ]);
  });

  it('gives the same bytes for the same conversation', () => {
    expect(JSON.stringify(bodyFor('https://x.test/v1'))).toBe(JSON.stringify(bodyFor('https://x.test/v1')));
  });

  it('writes what stays the same once, and everything that has changed anew', () => {
    const requests = new ChatRequests(openModel('https://x.test/v1'));
    const ask = { role: 'user', content: 'Grüß "Gott" 👋 \uD800' } as const;
    const answer = { role: 'assistant', text: 'Hello', toolCalls: [] } as const;
    const left = { role: 'assistant', text: '', toolCalls: [] } as const;
    const asked = { role: 'user', content: 'Grüß "Gott" 👋 \uFFFD' };
    const first = requests.write({ system: 'Be “brief”.', messages: [ask], tools: [tool('read')] });
    expect(read(first)).toMatchObject({ tools: [written('read')], messages: [{ role: 'system', content: 'Be “brief”.' }, asked] });
    const tools = [tool('read'), tool('write')];
    const second = requests.write({ system: 'Be long.', messages: [ask, left, answer], tools });
    const messages = [{ role: 'system', content: 'Be long.' }, asked, { role: 'assistant', content: 'Hello' }];
    expect(read(second)).toMatchObject({ tools: [written('read'), written('write')], messages });
    const third = requests.write({ system: '', messages: [left, answer], tools });
    expect(third[0]).toBe(second[0]);
    expect(read(third).messages).toEqual([{ role: 'assistant', content: 'Hello' }]);
    expect(read(requests.write({ system: '', messages: [], tools: [] }))).toEqual({ ...bodyFor('https://x.test/v1'), messages: [] });
  });

  it('writes only the new messages of a list that begins with the same ones', () => {
    const requests = new ChatRequests(openModel('https://x.test/v1'));
    const write = (...messages: ModelMessage[]) => requests.write({ system: 'Be brief.', messages, tools: [] });
    const [one, two, three, other] = [say('one'), say('two'), say('three'), say('other')];
    const first = write(one, two);
    const longer = write(one, two, three);
    expect(longer.slice(0, 3)).toEqual(first.slice(0, 3));
    expect(longer[2]).toBe(first[2]);
    expect(read(longer).messages.slice(1)).toEqual([one, two, three]);
    expect(read(write(one, two, three)).messages.slice(1)).toEqual([one, two, three]);
    // Shorter, as after a compaction, and with another one in between.
    expect(read(write(one, three)).messages.slice(1)).toEqual([one, three]);
    expect(read(write(one, other, three)).messages.slice(1)).toEqual([one, other, three]);
    expect(read(write(one)).messages.slice(1)).toEqual([one]);
  });

  it('keeps writing the right system prompt when there are more than are kept', () => {
    const requests = new ChatRequests(openModel('https://x.test/v1'));
    const prompts = Array.from({ length: 12 }, (_, index) => `${String(index)} ${'x'.repeat(1024 * 1024)}`);
    for (const system of [...prompts, ...prompts])
      expect(read(requests.write({ system, messages: [], tools: [] })).messages).toEqual([{ role: 'system', content: system }]);
  });
});

const CallsBody = z.object({
  messages: z.array(
    z.object({ role: z.string(), tool_calls: z.array(z.object({ id: z.string() })).default([]), tool_call_id: z.string().optional() }),
  ),
});

function requestWithCalls(ids: readonly string[]): ModelRequest {
  const messages: ModelMessage[] = [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', text: '', toolCalls: ids.map((id) => ({ id, name: 'read', arguments: '{}' })) },
    ...ids.map((callId): ModelMessage => ({ role: 'tool', callId, output: 'done' })),
  ];
  return { system: '', messages, tools: [] };
}

function listIds({ messages }: z.output<typeof CallsBody>) {
  return {
    calls: messages.flatMap((message) => message.tool_calls.map(({ id }) => id)),
    results: messages.flatMap(({ tool_call_id: id }) => id ?? []),
  };
}

/** What Mistral answers to ids of calls, with status 400, in its own words; undefined when it takes them. */
function findMistralsRefusal(body: z.output<typeof CallsBody>): string | undefined {
  const { calls, results } = listIds(body);
  const refused = [...calls, ...results].find((id) => !/^[a-zA-Z0-9]{9}$/u.test(id));
  return refused === undefined ? undefined : `Tool call id was ${refused} but must be a-z, A-Z, 0-9, with a length of 9.`;
}

describe('thoughts in the history', () => {
  const signed = { google: { thought_signature: 'abc' } };
  const call = { id: 'c1', name: 'read', arguments: '{}' };
  const placeholder = { google: { thought_signature: 'skip_thought_signature_validator' } };
  const gemini = 'https://generativelanguage.googleapis.com/v1beta/openai';
  const own = {
    model: 'p/m',
    reasoning: 'because',
    toolCalls: [
      { ...call, extra: signed },
      { ...call, id: 'c2' },
    ],
  };
  const Sent = z.looseObject({ tool_calls: z.array(z.looseObject({ extra_content: z.unknown().optional() })).optional() });

  function sent(baseUrl: string, facts: Partial<AssistantModelMessage>, name = 'm') {
    const message: AssistantModelMessage = { role: 'assistant', text: '', toolCalls: [call, { ...call, id: 'c2' }], ...facts };
    const body = read(new ChatRequests(openModel(baseUrl, { name })).write({ ...request, messages: [say('go'), message] }));
    return Sent.parse(body.messages[1]);
  }
  const extras = (...parts: Parameters<typeof sent>) => sent(...parts).tool_calls?.map(({ extra_content: extra }) => extra);

  it.each([gemini, 'https://x.test/v1'])('go back as they came to the model that had them, at %s', (baseUrl) => {
    expect(extras(baseUrl, own)).toEqual([signed, undefined]);
    expect(sent(baseUrl, own)).toMatchObject({ reasoning_content: 'because' });
  });

  it('have the name that OpenRouter gives them', () => {
    expect(sent('https://openrouter.ai/api/v1', own)).toMatchObject({ reasoning: 'because' });
    expect(sent('https://openrouter.ai/api/v1', own)).not.toHaveProperty('reasoning_content');
  });

  const openRouter = 'https://openrouter.ai/api/v1';
  const flash = 'google/gemini-3-flash-preview';
  const detail = { type: 'reasoning.encrypted', id: 'c1', data: 'abc', format: 'google-gemini-v1', index: 0 };
  const ownOverOpenRouter = {
    ...own,
    model: `p/${flash}`,
    toolCalls: [
      { ...call, extra: { openrouter: { type: detail.type, data: detail.data, format: detail.format, index: 0 } } },
      { ...call, id: 'c2' },
    ],
  };

  it('are beside the calls of a Gemini over OpenRouter, signed, and without their text', () => {
    const message = sent(openRouter, ownOverOpenRouter, flash);
    expect(message['reasoning_details']).toEqual([detail]);
    expect(JSON.stringify(message)).not.toMatch(/because|extra_content/u);
  });

  it('are signed there with what Google documents, for the first call alone, where another model made the calls', () => {
    const skipped = [{ ...detail, data: 'skip_thought_signature_validator' }];
    for (const facts of [{}, { ...ownOverOpenRouter, model: 'q/m' }, { ...own, model: `p/${flash}` }])
      expect(sent(openRouter, facts, flash)['reasoning_details']).toEqual(skipped);
    for (const other of ['google/gemini-2.5-pro', 'openai/gpt-5'])
      expect(sent(openRouter, {}, other)).not.toHaveProperty('reasoning_details');
  });

  it('are signed as those of another model where the provider that was OpenRouter has the address of Vertex by now', () => {
    const vertex = 'https://aiplatform.googleapis.com/v1/projects/x/locations/y/endpoints/openapi';
    expect(extras(vertex, ownOverOpenRouter, flash)).toEqual([placeholder, undefined]);
    expect(extras('https://x.test/v1', ownOverOpenRouter, flash)).toEqual([undefined, undefined]);
  });

  it.each(['aiplatform', 'europe-west4-aiplatform', 'aiplatform.eu.rep'])('are signed for a Gemini 3 of Vertex at %s', (place) => {
    const vertex = `https://${place}.googleapis.com/v1/projects/x/locations/y/endpoints/openapi`;
    expect(extras(vertex, {}, flash)).toEqual([placeholder, undefined]);
    expect(extras(vertex, {}, 'google/gemini-2.5-pro')).toEqual([undefined, undefined]);
    expect(extras(vertex, {}, 'meta/llama-4')).toEqual([undefined, undefined]);
    const given = { vertex: { thought_signature: 'abc' } };
    expect(extras(vertex, { model: `p/${flash}`, toolCalls: [{ ...call, extra: given }] }, flash)).toEqual([given]);
  });

  it('go to no other model', () => {
    for (const model of ['q/m', undefined])
      expect(JSON.stringify(sent('https://x.test/v1', { ...own, model }))).not.toMatch(/extra_content|reasoning|abc/u);
  });

  it('are not sent with a message without calls, which older models refuse', () => {
    const answer = sent('https://api.deepseek.com/v1', { ...own, text: 'Hello', toolCalls: [] });
    expect(answer).toEqual({ role: 'assistant', content: 'Hello' });
  });

  it('are signed for Gemini 3 with what Google documents where another model made the calls, the first of them alone', () => {
    expect(extras(gemini, { model: 'q/m', toolCalls: own.toolCalls })).toEqual([placeholder, undefined]);
    expect(extras(gemini, {}, 'gemini-3-flash-preview')).toEqual([placeholder, undefined]);
    expect(extras(gemini, {}, 'gemini-2.5-flash')).toEqual([undefined, undefined]);
  });

  it.each(['https://api.deepseek.com/v1', 'https://api.moonshot.ai/v1', 'https://api.moonshot.cn/v1'])(
    'have a placeholder at %s where they are not known',
    (baseUrl) => {
      expect(sent(baseUrl, { model: 'q/m', reasoning: 'because' })).toMatchObject({ reasoning_content: ' ' });
      expect(sent(baseUrl, own)).toMatchObject({ reasoning_content: 'because' });
    },
  );
});

function say(content: string): ModelMessage {
  return { role: 'user', content };
}

function tool(name: string): ModelTool {
  return { name, description: `It can ${name}.`, parameters: { type: 'object', properties: { path: { type: 'string' } } } };
}

function written(name: string) {
  return { type: 'function', function: tool(name) };
}
