import { describe, expect } from '@jest/globals';
import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { ChatCompletion, OpenAiError, ResponseObject, SessionView, TurnView } from '@concierge/contract';
import type { Answer } from './client.ts';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, type Tenant } from './fixture.ts';

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
  tenant = await contract.tenant();
});

type KeyName = 'admin' | 'cs' | 'read';

async function complete(key: KeyName, fields: object): Promise<Answer> {
  return await tenant.as(key).request('/v1/chat/completions', { body: { model: 'cs', ...fields } });
}

async function respond(key: KeyName, fields: object): Promise<Answer> {
  return await tenant.as(key).request('/v1/responses', { body: { model: 'cs', ...fields } });
}

/** The `data:` lines of a stream. */
function readData({ text }: Answer): string[] {
  const lines: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => lines.push(data) });
  parser.feed(text);
  return lines;
}

function says(content: unknown): { messages: object[] } {
  return { messages: [{ role: 'user', content }] };
}

/** The smallest picture there is. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('the OpenAI-compatible endpoints', () => {
  promise(['C/4/11'], 'answer with an agent whose tools run on our side', async () => {
    const message = 'door-one [[tools:write {"path":"memory/door.md","content":"kept-by-the-tool"}]] [[say:Written.]]';
    const answer = await complete('admin', { model: 'admin', temperature: 0, ...says(message) });
    expect(answer.status).toBe(200);
    const completion = ChatCompletion.parse(answer.json());
    expect(completion.choices[0]).toMatchObject({ message: { content: 'Written.' }, finish_reason: 'stop' });
    expect(completion.usage.total_tokens).toBeGreaterThan(0);
    expect(answer.text).not.toContain('kept-by-the-tool');
    expect((await tenant.as('admin').get('/api/files/memory/door.md')).text).toBe('kept-by-the-tool');
    const turn = TurnView.parse((await tenant.as('admin').get(`/api/turns/${answer.headers.get('x-concierge-turn-id') ?? ''}`)).json());
    expect(turn).toMatchObject({ agent: 'admin', origin: 'api', status: 'done', contact_id: completion.conversation.id });
    const response = ResponseObject.parse((await respond('admin', { model: 'admin', input: `again ${message}` })).json());
    expect(response).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'Written.' }] }] });
  });

  promise(['C/4/11'], 'stream as OpenAI does', async () => {
    const fields = { stream: true, stream_options: { include_usage: true } };
    const chunks = readData(await complete('cs', { ...fields, ...says('[[say:one two three|chunks=3]]') }));
    expect(chunks.at(-1)).toBe('[DONE]');
    const Chunk = z.object({ choices: z.array(z.object({ delta: z.object({ content: z.string().optional() }) })), usage: z.unknown() });
    const parsed = chunks.slice(0, -1).map((data) => Chunk.parse(JSON.parse(data)));
    expect(parsed.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('one two three');
    expect(parsed.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } });
    const events = (await respond('cs', { input: '[[say:one two three|chunks=3]]', stream: true })).events();
    expect(events.map(({ data }) => data['sequence_number'])).toEqual([...events.keys()]);
    expect(events.map(({ type }) => type)).toEqual(events.map(({ data }) => data['type']));
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      data: { response: { output: [{ content: [{ text: 'one two three' }] }] } },
    });
  });

  promise(['C/4/11'], 'keep a conversation by user, by its id and by the response before', async () => {
    const first = ChatCompletion.parse((await complete('cs', { user: 'ann', ...says('I like blue') })).json());
    const history = [
      { role: 'user', content: 'I like blue' },
      { role: 'assistant', content: 'made-up-answer' },
      { role: 'user', content: 'And?' },
    ];
    const second = ChatCompletion.parse((await complete('cs', { user: 'ann', messages: history })).json());
    const third = ResponseObject.parse((await respond('cs', { input: 'More?', conversation: first.conversation.id })).json());
    const fourth = ResponseObject.parse((await respond('cs', { input: 'Still?', previous_response_id: third.id })).json());
    for (const { conversation } of [second, third, fourth]) expect(conversation.id).toBe(first.conversation.id);
    const session = SessionView.parse((await tenant.as('read').get(`/api/sessions/${first.conversation.id}`)).json());
    const said = session.messages.filter(({ role }) => role === 'user').map((message) => ('text' in message ? message.text : ''));
    expect(said).toEqual(['I like blue', 'And?', 'More?', 'Still?']);
    const stateless = await complete('cs', {
      messages: [{ role: 'system', content: 'app-rule' }, ...history, { role: 'user', content: 'door-two' }],
    });
    expect(stateless.status).toBe(200);
    const asked = contract.model.requests.findLast(({ userText }) => userText.includes('door-two'));
    for (const part of ['app-rule', 'User: I like blue', 'Assistant: made-up-answer']) expect(asked?.userText).toContain(part);
  });

  promise(['C/4/11'], 'show images to the model as images', async () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };
    expect((await complete('cs', says([{ type: 'text', text: 'door-three' }, image]))).status).toBe(200);
    const input = [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'door-four' },
          { type: 'input_image', image_url: image.image_url.url },
        ],
      },
    ];
    expect((await respond('cs', { input })).status).toBe(200);
    for (const marker of ['door-three', 'door-four']) {
      const asked = contract.model.requests.findLast(({ userText }) => userText.includes(marker));
      expect(JSON.stringify(asked?.raw)).toContain(`data:image/png;base64,${png}`);
    }
  });

  promise(['C/4/11', 'C/2/4'], 'list the agents of the tenant that a key may talk to as models', async () => {
    const put = async (name: string, front: string): Promise<unknown> =>
      tenant.as('admin').request(`/api/files/agents/${name}.md`, {
        method: 'PUT',
        rawBody: `---\ndescription: x\n${front}---\n${name}-prompt\n`,
        headers: { 'content-type': 'text/markdown' },
      });
    await put('inner', '');
    await put('outer', 'public: true\n');
    const models = async (key: KeyName): Promise<string[]> => {
      const list = z.object({ object: z.literal('list'), data: z.array(z.object({ id: z.string(), object: z.literal('model') })) });
      return list.parse((await tenant.as(key).get('/v1/models')).json()).data.map(({ id }) => id);
    };
    expect(await models('admin')).toEqual(['admin', 'cs', 'inner', 'outer']);
    expect(await models('cs')).toEqual(['cs', 'outer']);
    expect((await complete('cs', { model: 'outer', ...says('door-five') })).status).toBe(200);
    const asked = contract.model.requests.findLast(({ userText }) => userText.includes('door-five'));
    expect(JSON.stringify(asked?.body.messages[0])).toContain('outer-prompt');
    expect((await complete('cs', { model: 'inner', ...says('x') })).status).toBe(403);
    expect((await tenant.as('cs').get('/v1/models/outer')).status).toBe(200);
  });

  promise(['C/4/11'], 'have errors in OpenAI’s shape', async () => {
    const readError = (answer: Answer): readonly [number, string, string | null] => {
      const { code, param } = OpenAiError.parse(answer.json()).error;
      return [answer.status, code, param];
    };
    expect(readError(await contract.client().request('/v1/responses', { body: {} }))).toEqual([401, 'invalid_api_key', null]);
    expect(readError(await complete('cs', { model: 'gpt-5', ...says('x') }))).toEqual([404, 'model_not_found', 'model']);
    expect(readError(await complete('cs', { n: 2, ...says('x') }))).toEqual([400, 'invalid_request', 'n']);
    expect(readError(await complete('cs', { tools: [{}], ...says('x') }))).toEqual([400, 'invalid_request', 'tools']);
    expect(readError(await respond('read', { input: 'x' }))).toEqual([403, 'scope_required', null]);
    expect(readError(await tenant.as('cs').get('/v1/nothing'))).toEqual([404, 'not_found', null]);
  });
});
