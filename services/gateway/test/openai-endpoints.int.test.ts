import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatCompletion, OpenAiError, routes, type AcceptedTurn } from '@concierge/contract';
import { eventually, gate } from '@concierge/testing';
import OpenAI from 'openai';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { collect, failure, hello, isDone, openAiClient, sayItBackTo, tenantWithAgents, withFile } from './openai-client.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let accepted: AcceptedTurn[];

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  accepted = [];
  gateway.script = sayItBackTo(accepted);
  tenant = await tenantWithAgents(gateway);
});

function client(key: string, maxRetries = 0): OpenAI {
  return openAiClient(gateway, key, maxRetries);
}

describe('a conversation', () => {
  const ask = async (key: string, fields: object): Promise<ChatCompletion> => {
    const body: Record<string, unknown> = { model: 'cs', messages: hello, ...fields };
    return ChatCompletion.parse(await client(key).post('/chat/completions', { body }));
  };
  const history = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: 'Open?' },
  ];

  it('is a new one where its history is not known, which goes in as a transcript', async () => {
    const first = await ask(tenant.cs, { messages: history });
    const second = await ask(tenant.cs, {});
    expect(first.conversation.id).not.toBe(second.conversation.id);
    expect(accepted[0]).toMatchObject({ text: 'Open?', sender: null, preface: expect.stringMatching(/Assistant: Hello!$/u) });
  });

  it('is taken up with a history longer than any message', async () => {
    const long = 'x'.repeat(40_000);
    const messages = [...history.slice(0, -1), { role: 'user', content: long }, { role: 'assistant', content: long }, ...hello];
    await ask(tenant.cs, { messages });
    expect(accepted[0]?.preface?.length).toBeGreaterThan(80_000);
  });

  describe.each(['cs', 'admin'])('with %s that is sent its whole history each time', (model) => {
    const exchanges = 12;
    type Message = { readonly role: string; readonly content: string };

    /** Goes on as useChat and the like do: it sends all messages and the new one, and keeps the answer. */
    async function say(said: readonly Message[], text: string): Promise<readonly Message[]> {
      const messages = [{ role: 'system', content: `Now is ${String(said.length)}.` }, ...said, { role: 'user', content: text }];
      const { choices } = await ask(tenant.admin, { model, messages });
      return [...messages.slice(1), { role: 'assistant', content: choices[0]?.message.content ?? '' }];
    }

    it('is one session, with a readable title and every message once', async () => {
      let said: readonly Message[] = [];
      for (let index = 0; index < exchanges; index += 1)
        said = await say(said, index === 0 ? 'What about a pomegranate, please?' : `And number ${String(index)}?`);
      const sessions = routes.listSessions.answers[200].json.parse(await (await gateway.ask(tenant.read, '/api/sessions')).json());
      expect(sessions).toMatchObject([{ title: 'What about a pomegranate, please?', messageCount: 2 * exchanges }]);
      expect(accepted.map(({ text }) => text)).toEqual(said.filter(({ role }) => role === 'user').map(({ content }) => content));
      // Not quadratic: no turn gets again what is in its session.
      expect(Math.max(...accepted.map(({ preface = '' }) => preface.length))).toBeLessThan(100);
      const found = z
        .object({ hits: z.array(z.object({ ref: z.string() })) })
        .parse(await (await gateway.ask(tenant.read, '/api/memory?q=pomegranate')).json());
      expect(new Set(found.hits.map(({ ref }) => ref))).toEqual(new Set([accepted[0]?.sessionId]));
    });

    it('is two where two begin alike, and each goes on in its own', async () => {
      const [one, other] = [await say([], 'Hi'), await say([], 'Hi')];
      await say(await say(one, 'I am Ann'), 'Who am I?');
      await say(await say(other, 'I am Bob'), 'Who am I?');
      const texts = Map.groupBy(accepted, ({ sessionId }) => sessionId);
      expect([...texts.values()].map((turns) => turns.map(({ text }) => text))).toEqual([
        ['Hi', 'I am Bob', 'Who am I?'],
        ['Hi', 'I am Ann', 'Who am I?'],
      ]);
    });

    it('is another one from where its history was changed', async () => {
      const said = await say(await say([], 'Hi'), 'I am Ann');
      await say(said.slice(0, 2), 'I am Bob');
      const edited = said.map(({ role, content }) => ({ role, content: role === 'assistant' ? `${content}!` : content }));
      await say(edited, 'Who am I?');
      expect(new Set(accepted.map(({ sessionId }) => sessionId)).size).toBe(3);
      expect(accepted.at(-1)?.preface).toContain('Assistant: I am Ann!');
    });

    it('goes on where its reader stopped reading, and not with another key', async () => {
      const said = await say([], 'one two three');
      const cut = said.map(({ role, content }) => ({ role, content: role === 'assistant' ? 'one two' : content }));
      const messages = [...cut, { role: 'user', content: 'and?' }];
      const other = await tenant.scope.keys.create({ scopes: ['admin'] }, ['admin']);
      await ask(other.key, { model, messages });
      await ask(tenant.admin, { model, messages });
      expect(accepted.map(({ sessionId }) => sessionId === accepted[0]?.sessionId)).toEqual([true, false, true]);
    });

    it('goes on where it was after a message of it was refused', async () => {
      const said = await say([], 'Hi');
      const zip = { filename: 'a.zip', file_data: Buffer.from('504b0304140000000800', 'hex').toString('base64') };
      const body = { model, messages: [...said, ...withFile(zip).messages] };
      expect(await failure(client(tenant.admin).post('/chat/completions', { body }))).toMatchObject({ status: 415 });
      await say(said, 'Without the file, then');
      expect(accepted.map(({ sessionId }) => sessionId === accepted[0]?.sessionId)).toEqual([true, true]);
    });

    it('is the same turn for the same Idempotency-Key, although the session has gone on', async () => {
      const said = await say([], 'Hi');
      const body = { model, messages: [...said, { role: 'user', content: 'Again?' }] };
      const headers = { 'Idempotency-Key': `again-${model}` };
      const answers = [];
      for (let time = 0; time < 2; time += 1)
        answers.push(ChatCompletion.parse(await client(tenant.admin).post('/chat/completions', { body, headers })));
      expect(answers[0]?.id).toBe(answers[1]?.id);
      expect(accepted).toHaveLength(2);
    });
  });

  it('is kept for each user, who then sends only what is new', async () => {
    await ask(tenant.cs, { user: 'ann' });
    await ask(tenant.admin, { user: 'ann', messages: history.slice(1) });
    await ask(tenant.cs, { safety_identifier: 'bob' });
    for (const messages of [hello, history.slice(1)]) await ask(tenant.admin, { model: 'admin', user: 'ann', messages });
    expect(accepted.map(({ sender, text, preface }) => [sender, text, preface])).toEqual([
      ['openai:ann', 'hello there', undefined],
      ['openai:ann', 'Open?', undefined],
      ['openai:bob', 'hello there', undefined],
      ['openai:ann', 'hello there', undefined],
      ['openai:ann', 'Open?', undefined],
    ]);
    const [first, second, bob, ...owners] = accepted.map(({ sessionId }) => sessionId);
    expect(first).toBe(second);
    expect(new Set([first, bob, ...owners]).size).toBe(3);
  });

  it('goes on by its id, however that is written, through either API', async () => {
    const { id } = (await ask(tenant.admin, { model: 'admin' })).conversation;
    for (const fields of [{ conversation: id }, { conversation: { id } }, { metadata: { contact_id: id } }])
      expect((await ask(tenant.admin, { model: 'admin', messages: history.slice(1), ...fields })).conversation.id).toBe(id);
    const response = await client(tenant.admin).responses.create({ model: 'admin', input: 'Well?', conversation: id });
    expect(response.conversation?.id).toBe(id);
    expect(accepted.map(({ text }) => text)).toEqual(['hello there', 'Open?', 'Open?', 'Open?', 'Well?']);
  });

  it('goes on after a response that is named, for those who may see it', async () => {
    const first = await client(tenant.cs).responses.create({ model: 'cs', input: 'Hi' });
    const second = await client(tenant.cs).responses.create({ model: 'cs', input: 'Open?', previous_response_id: first.id });
    expect(second).toMatchObject({ conversation: first.conversation, previous_response_id: first.id });
    const stranger = await tenant.scope.keys.create({ scopes: ['cs'] }, ['admin']);
    for (const [key, id] of [
      [stranger.key, first.id],
      [tenant.cs, 'resp_nope'],
      [(await gateway.tenant()).cs, first.id],
    ] as const) {
      const error = await failure(client(key).responses.create({ model: 'cs', input: 'x', previous_response_id: id }));
      expect(error).toMatchObject({ status: 404, param: 'previous_response_id' });
    }
  });

  it('belongs to its agent and its user', async () => {
    const { id } = (await ask(tenant.admin, { user: 'ann' })).conversation;
    expect(await failure(ask(tenant.admin, { model: 'admin', conversation: id }))).toMatchObject({ status: 404, code: 'not_found' });
    expect(await failure(ask(tenant.admin, { user: 'bob', conversation: id }))).toMatchObject({ status: 409, code: 'contact_mismatch' });
  });
});

describe('images and files', () => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const dataUrl = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString('base64')}`;
  const image = { type: 'image_url', image_url: { url: dataUrl('image/jpeg', png), detail: 'low' } } as const;

  it('are attached as uploads are: by their bytes, whatever they claim to be', async () => {
    const file = {
      type: 'file',
      file: { filename: '../notes.md', file_data: dataUrl('application/pdf', Buffer.from('# Notes')) },
    } as const;
    await client(tenant.cs).chat.completions.create({
      model: 'cs',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, image, file] }],
    });
    expect(accepted[0]).toMatchObject({
      text: 'Look',
      attachments: [
        { name: 'image-1', type: 'image/png', size: png.length },
        { name: 'notes.md', type: 'text/plain', size: 7 },
      ],
    });
    const [stored] = accepted[0]?.attachments ?? [];
    expect(await tenant.scope.uploads.bytes(stored?.id ?? '')).toEqual(png);
  });

  it('have no endless name', async () => {
    const marks = 'a\u0301\u0323'.repeat(20_000);
    const file = { type: 'file', file: { filename: marks, file_data: dataUrl('text/plain', Buffer.from('x')) } } as const;
    const asked = client(tenant.cs).chat.completions.create({ model: 'cs', messages: [{ role: 'user', content: [file] }] });
    expect(await failure(asked)).toMatchObject({ status: 400, code: 'invalid_request' });
    const part = { type: 'input_file', filename: marks, file_data: dataUrl('text/plain', Buffer.from('x')) } as const;
    const other = client(tenant.cs).responses.create({ model: 'cs', input: [{ role: 'user', content: [part] }] });
    expect(await failure(other)).toMatchObject({ status: 400, code: 'invalid_request' });
  });

  it('come to responses too, and as earlier uploads', async () => {
    const uploaded = await gateway.ask(tenant.cs, '/api/uploads', { method: 'POST', files: [{ bytes: png, name: 'shop.png' }] });
    const [upload] = routes.createUploads.answers[201].json.parse(await uploaded.json());
    const id = upload?.id ?? '';
    await client(tenant.cs).responses.create({
      model: 'cs',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_image', detail: 'auto', image_url: dataUrl('image/png', png) },
            { type: 'input_image', detail: 'auto', file_id: id },
            { type: 'input_file', filename: 'a.txt', file_data: Buffer.from('plain').toString('base64') },
          ],
        },
      ],
    });
    expect(accepted[0]?.attachments.map(({ name, type }) => [name, type])).toEqual([
      ['image-1', 'image/png'],
      ['shop.png', 'image/png'],
      ['a.txt', 'text/plain'],
    ]);
    expect(accepted[0]?.attachments[1]?.id).toBe(id);
  });

  it('may be as large as an upload', async () => {
    const large = (bytes: number): object => withFile({ filename: 'large.txt', file_data: Buffer.alloc(bytes, 'x').toString('base64') });
    const post = async (fields: object): Promise<unknown> =>
      client(tenant.cs).post('/chat/completions', { body: { model: 'cs', ...fields } });
    await post(large(10 * 1024 * 1024));
    expect(accepted[0]?.attachments[0]?.size).toBe(10 * 1024 * 1024);
    expect(await failure(post(large(10 * 1024 * 1024 + 1)))).toMatchObject({ status: 413, code: 'too_large' });
    expect(await failure(post(large(13 * 1024 * 1024)))).toMatchObject({ status: 413, code: 'too_large' });
  });

  it('of another type are refused', async () => {
    const zip = withFile({ filename: 'a.zip', file_data: Buffer.from('504b0304140000000800', 'hex').toString('base64') });
    const error = await failure(client(tenant.cs).post('/chat/completions', { body: { model: 'cs', ...zip } }));
    expect(error).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    expect(accepted).toEqual([]);
  });

  it('do not make a repeated request another one', async () => {
    const ask = async (url: string): Promise<string> => {
      const messages = [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url } }] }];
      const { id } = await client(tenant.cs).chat.completions.create({ model: 'cs', messages }, { headers: { 'Idempotency-Key': 'i1' } });
      return id;
    };
    expect(await ask(image.image_url.url)).toBe(await ask(image.image_url.url));
    expect(await failure(ask(dataUrl('text/plain', Buffer.from('other'))))).toMatchObject({ status: 422, code: 'idempotency_conflict' });
  });
});

describe('an error', () => {
  const create = async (key: string, model = 'admin', retries = 0): Promise<unknown> =>
    client(key, retries).chat.completions.create({ model, messages: [...hello] });

  it('has the shape and the class of OpenAI’s', async () => {
    const wrong = await failure(create('ck_live_nonsense'));
    expect(wrong).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(wrong).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error', param: null });
    expect(wrong.requestID).toMatch(/^r_/u);
    for (const model of ['admin', 'books']) {
      const error = await failure(create(tenant.cs, model));
      expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
      expect(error).toMatchObject({ status: 403, code: 'scope_required' });
    }
    expect(await failure(create(tenant.read, 'guide'))).toMatchObject({ status: 403, code: 'scope_required' });
    for (const model of ['gpt-5', 'nobody', 'typo', '../x'])
      expect(await failure(create(tenant.admin, model))).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' });
    expect(accepted).toEqual([]);
  });

  it('looks so for whatever is wrong below /v1', async () => {
    const post = { method: 'POST' };
    const requests: readonly (readonly [number, string, string, object])[] = [
      [404, 'not_found', '/v1/', {}],
      [404, 'not_found', '/v1/embeddings', { ...post, body: {} }],
      [405, 'method_not_allowed', '/v1/chat/completions', {}],
      [405, 'method_not_allowed', '/v1/models/cs', { method: 'DELETE' }],
      [400, 'invalid_json', '/v1/responses', { ...post, body: '{"model":' }],
      [400, 'invalid_request', '/v1/responses', { ...post, body: {} }],
      [400, 'invalid_request', '/v1/models/%E0%A4%A', {}],
      [415, 'unsupported_media_type', '/v1/responses', { ...post, body: 'x', headers: { 'Content-Type': 'text/plain' } }],
      [400, 'invalid_request', '/v1/responses', { ...post, body: { model: 'admin', input: 'x' }, headers: { 'Idempotency-Key': 'é' } }],
    ];
    for (const [status, code, path, init] of requests) {
      const response = await gateway.ask(tenant.admin, path, init);
      expect([path, response.status, response.headers.get('content-type')]).toEqual([path, status, 'application/json; charset=utf-8']);
      expect(OpenAiError.parse(await response.json()).error).toMatchObject({ type: 'invalid_request_error', code });
    }
    const keyless = await gateway.ask(undefined, '/v1/models');
    expect(keyless.headers.get('www-authenticate')).toContain('Bearer');
    expect(OpenAiError.parse(await keyless.json()).error.code).toBe('invalid_api_key');
  });

  it('of a limit names a time to retry, and does not let the client wait for an hour in silence', async () => {
    await tenant.scope.updateSettings({ limits: { requestsPerHour: 1 } });
    await create(tenant.admin);
    const error = await failure(create(tenant.admin, 'admin', 2));
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' });
    expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(60);
  });

  it('of a turn that failed is not asked again for by the client: that would be a second turn', async () => {
    gateway.script = async ({ turn }) => {
      accepted.push(turn);
      throw new Error('the provider is down');
    };
    const error = await failure(create(tenant.admin, 'admin', 2));
    expect(error).toBeInstanceOf(OpenAI.InternalServerError);
    expect(error).toMatchObject({ status: 502, code: 'provider_error', type: 'server_error' });
    expect(accepted).toHaveLength(1);
  });

  it('in the middle of a stream ends it', async () => {
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'I was just' } });
      await writer.flush();
      throw new Error('the provider is down');
    };
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      const stream = await client(tenant.admin).chat.completions.create({ model: 'admin', messages: [...hello], stream: true });
      for await (const { choices } of stream) seen.push(choices[0]?.delta.content ?? '');
    };
    expect(await failure(read())).toMatchObject({ code: 'provider_error', type: 'server_error' });
    expect(seen.join('')).toBe('I was just');
    const events = await collect(await client(tenant.admin).responses.create({ model: 'admin', input: 'x', stream: true }));
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { error: { code: 'provider_error' } } });
  });

  it('reports it when the service goes away under a stream', async () => {
    await using leaving = await TestGateway.start();
    const more = gate();
    leaving.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'begun' } });
      await writer.flush();
      await more.opened;
    };
    const { admin } = await leaving.tenant();
    const stream = await openAiClient(leaving, admin).chat.completions.create({ model: 'admin', messages: [...hello], stream: true });
    let stopping: Promise<unknown> = Promise.resolve();
    const read = async (): Promise<void> => {
      for await (const { choices } of stream) if (choices[0]?.delta.content === 'begun') stopping = leaving.stop(100);
    };
    expect(await failure(read())).toMatchObject({ code: 'shutting_down' });
    await stopping;
    more.open();
  });
});

describe('a request', () => {
  it('is one turn for one Idempotency-Key', async () => {
    const ask = async (content: string): Promise<{ id: string; replayed: string | null }> => {
      const options = { headers: { 'Idempotency-Key': 'k1' } };
      const messages = [{ role: 'user' as const, content }];
      const { data, response } = await client(tenant.admin).chat.completions.create({ model: 'admin', messages }, options).withResponse();
      return { id: data.id, replayed: response.headers.get('idempotency-replayed') };
    };
    const first = await ask('once');
    expect(await ask('once')).toEqual({ id: first.id, replayed: 'true' });
    expect(first.replayed).toBeNull();
    expect(await failure(ask('twice'))).toMatchObject({ status: 422, code: 'idempotency_conflict' });
    expect(accepted).toHaveLength(1);
  });

  it('goes on when its client goes away', async () => {
    const more = gate();
    gateway.script = async ({ turn, writer }) => {
      accepted.push(turn);
      writer.emit({ type: 'text_delta', data: { delta: 'begun' } });
      await writer.flush();
      await more.opened;
    };
    const stream = await client(tenant.admin).chat.completions.create({ model: 'admin', messages: [...hello], stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content === 'begun') break;
    more.open();
    await eventually(async () => isDone(gateway, tenant.admin, accepted[0]?.turnId));
    expect(accepted).toHaveLength(1);
  });
});
