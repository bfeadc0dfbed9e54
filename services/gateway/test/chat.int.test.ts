import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatReply, Problem } from '@concierge/contract';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { parseEvents, joinText } from './sse.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
});

const post = { method: 'POST' };
const json = { Accept: 'application/json' };

async function problem(response: Response): Promise<Problem> {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  return Problem.parse(await response.json());
}

async function reply(response: Response): Promise<ChatReply> {
  expect(response.status).toBe(200);
  return ChatReply.parse(await response.json());
}

describe('POST /api/admin', () => {
  it('streams the events of a turn: session first, done last', async () => {
    const response = await gateway.ask(tenant.admin, '/api/admin', { ...post, body: { message: 'one two three' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    const events = parseEvents(await response.text());
    expect(events[0]?.type).toBe('session');
    expect(events.at(-1)).toMatchObject({ type: 'done', data: { inputTokens: 3, outputTokens: 5, finishReason: 'stop' } });
    expect(joinText(events)).toBe('one two three');
    const ids = events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('answers with one JSON object when only that is accepted', async () => {
    const answer = await reply(await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'hi' } }));
    expect(answer).toMatchObject({ reply: 'hi', finishReason: 'stop', usage: { inputTokens: 3, outputTokens: 5 }, toolCalls: [] });
  });

  it.each(['*/*', 'application/json, text/event-stream', 'application/json, text/plain, */*', 'text/event-stream', 'image/png'])(
    'streams for Accept: %s',
    async (accept) => {
      const response = await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: { Accept: accept }, body: { message: 'hi' } });
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      await response.text();
    },
  );

  it('continues a session, and knows those of this agent only', async () => {
    const first = await reply(await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'a' } }));
    const again = await reply(
      await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'b', contact_id: first.contact_id } }),
    );
    expect(again.contact_id).toBe(first.contact_id);
    const other = await gateway.ask(tenant.admin, '/api/cs', { ...post, body: { message: 'c', contact_id: first.contact_id } });
    expect(await problem(other)).toMatchObject({ status: 404, code: 'not_found' });
    const unknown = await gateway.ask(tenant.admin, '/api/admin', { ...post, body: { message: 'c', contact_id: 'f'.repeat(32) } });
    expect(unknown.status).toBe(404);
  });

  it('answers a failed turn with its error: as an event, and as a problem in JSON mode', async () => {
    gateway.script = async () => {
      throw new Error('the provider is down');
    };
    const events = parseEvents(await (await gateway.ask(tenant.admin, '/api/admin', { ...post, body: { message: 'x' } })).text());
    expect(events.at(-1)).toMatchObject({ type: 'error', data: { code: 'provider_error', retryable: true } });
    const failed = await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'x' } });
    expect(await problem(failed)).toMatchObject({ status: 502, code: 'provider_error' });
  });

  it('goes on when the client goes away, and lets it resume where it was', async () => {
    const more = gate();
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'first ' } });
      await writer.flush();
      await more.opened;
      writer.emit({ type: 'text_delta', data: { delta: 'second' } });
    };
    const leaving = new AbortController();
    const response = await gateway.open(tenant.admin, '/api/admin', { ...post, body: { message: 'x' }, signal: leaving.signal });
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes('first ') && text.endsWith('\n\n')) break;
    }
    leaving.abort();
    const before = parseEvents(text);
    more.open();
    const turnId = String(before[0]?.data['turnId']);
    const resumed = await gateway.ask(tenant.admin, `/api/turns/${turnId}/events`, {
      headers: { 'Last-Event-ID': before.at(-1)?.id ?? '' },
    });
    const after = parseEvents(await resumed.text());
    expect(after.map(({ type }) => type)).toEqual(['text_delta', 'done']);
    expect(joinText([...before, ...after])).toBe('first second');
  });
});

describe('a chat request', () => {
  it.each([
    ['an empty message', { message: '' }, 'message'],
    ['no message', {}, 'message'],
    ['a message that is too long', { message: 'x'.repeat(32_001) }, 'message'],
    ['an unknown field', { message: 'x', massage: 'y' }, ''],
    ['an unknown attachment', { message: 'x', attachments: [`u_${'0'.repeat(32)}`] }, 'attachments.0'],
    ['an attachment that is no reference', { message: 'x', attachments: ['nope'] }, 'attachments.0'],
  ])('is refused for %s', async (_name, body, path) => {
    const found = await problem(await gateway.ask(tenant.admin, '/api/admin', { ...post, body }));
    expect(found).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(found.errors?.map((error) => error.path)).toContain(path);
  });

  it('counts code points: 32,000 emoji are a message', async () => {
    const answer = await reply(
      await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: '😀'.repeat(32_000) } }),
    );
    expect(answer.reply).toHaveLength(64_000);
  });

  it.each([
    [415, 'unsupported_media_type', { headers: { 'Content-Type': 'text/plain' }, body: '{"message":"x"}' }],
    [415, 'unsupported_media_type', { headers: { 'Content-Type': 'application/json; charset=latin1' }, body: '{"message":"x"}' }],
    [415, 'unsupported_media_type', { headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }, body: 'xx' }],
    [400, 'invalid_json', { body: '{"message":' }],
    [400, 'invalid_json', { body: `{"message":${'['.repeat(100)}${']'.repeat(100)}}` }],
    [413, 'too_large', { body: { message: 'x', more: 'y'.repeat(600_000) } }],
    [400, 'invalid_request', { headers: { 'Idempotency-Key': 'x'.repeat(256) }, body: { message: 'x' } }],
  ])('is answered %d %s', async (status, code, init) => {
    expect(await problem(await gateway.ask(tenant.admin, '/api/admin', { ...post, ...init }))).toMatchObject({ status, code });
  });

  it('is the same turn for the same Idempotency-Key and body, and refused for another body', async () => {
    const ask = async (body: object, headers: Record<string, string> = json): Promise<Response> =>
      gateway.ask(tenant.admin, '/api/admin', { ...post, headers: { 'Idempotency-Key': 'k-1', ...headers }, body });
    const first = await ask({ message: 'once' });
    expect(first.headers.get('idempotency-replayed')).toBeNull();
    const again = await ask({ message: 'once' });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(await reply(again)).toEqual(await reply(first));
    const streamed = await ask({ message: 'once' }, {});
    expect(streamed.headers.get('idempotency-replayed')).toBe('true');
    expect(joinText(parseEvents(await streamed.text()))).toBe('once');
    expect(await problem(await ask({ message: 'twice' }))).toMatchObject({ status: 422, code: 'idempotency_conflict' });
  });

  it('obeys the busy policy of its query', async () => {
    const release = gate();
    gateway.script = async ({ signal, writer }) => {
      await Promise.race([release.opened, untilAborted(signal)]);
      writer.emit({ type: 'text_delta', data: { delta: 'x' } });
    };
    const cs = async (query: string): Promise<Response> =>
      gateway.open(tenant.cs, `/api/cs${query}`, { ...post, body: { message: 'hi', sender: 'ada' } });
    const running = await cs('');
    await eventually(async () => {
      const list = await gateway.ask(tenant.admin, '/api/turns?status=running');
      return JSON.stringify(await list.json()).includes('running');
    });
    expect(await problem(await cs('?busy=reject'))).toMatchObject({ status: 409, code: 'session_busy' });
    expect(await problem(await cs('?busy=never'))).toMatchObject({ status: 400, code: 'invalid_request' });
    const next = await cs('?busy=interrupt');
    expect(parseEvents(await running.text()).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
    release.open();
    expect(parseEvents(await next.text()).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
  });
});

describe('POST /api/cs', () => {
  it('gives one sender one session, whatever the channel is called', async () => {
    const ask = async (body: object): Promise<ChatReply> =>
      reply(await gateway.ask(tenant.cs, '/api/cs', { ...post, headers: json, body: { message: 'x', ...body } }));
    const first = await ask({ sender: 'ada', channel: 'whatsapp' });
    expect((await ask({ sender: 'ada', channel: 'channel_a' })).contact_id).toBe(first.contact_id);
    expect((await ask({ sender: 'ada', channel: 'channel_a', contact_id: first.contact_id })).contact_id).toBe(first.contact_id);
    expect((await ask({ sender: 'bob', channel: 'channel_a' })).contact_id).not.toBe(first.contact_id);
    expect((await ask({ sender: 'ada' })).contact_id).not.toBe(first.contact_id);
    const mismatch = await gateway.ask(tenant.cs, '/api/cs', {
      ...post,
      body: { message: 'x', sender: 'bob', contact_id: first.contact_id },
    });
    expect(await problem(mismatch)).toMatchObject({ status: 409, code: 'contact_mismatch' });
  });

  it('starts a fresh session for each anonymous contact, which its contact_id continues', async () => {
    const ask = async (body: object): Promise<ChatReply> =>
      reply(await gateway.ask(tenant.cs, '/api/cs', { ...post, headers: json, body: { message: 'x', ...body } }));
    const [one, other] = [await ask({}), await ask({})];
    expect(one.contact_id).not.toBe(other.contact_id);
    expect((await ask({ contact_id: one.contact_id })).contact_id).toBe(one.contact_id);
  });
});

describe('turns', () => {
  it('are listed, looked up and cancelled', async () => {
    gateway.script = async ({ signal }) => untilAborted(signal);
    const response = await gateway.open(tenant.admin, '/api/admin', { ...post, body: { message: 'x' } });
    const listed = await eventually(async () => {
      const turns: { id: string; status: string }[] = JSON.parse(
        await (await gateway.ask(tenant.read, '/api/turns?status=running')).text(),
      );
      return turns[0];
    });
    const cancelled = await gateway.ask(tenant.admin, `/api/turns/${listed.id}/cancel`, post);
    expect(cancelled.status).toBe(202);
    const events = parseEvents(await response.text());
    expect(events.at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
    const view = await eventually(async () => {
      const found = await (await gateway.ask(tenant.read, `/api/turns/${listed.id}`)).json();
      return JSON.stringify(found).includes('"cancelled"') ? found : undefined;
    });
    expect(view).toMatchObject({ id: listed.id, status: 'cancelled', finishReason: 'cancelled', agent: 'admin', attempts: 1 });
  });

  it('of another key are hidden from a cs key, its own are not', async () => {
    const foreign = await reply(await gateway.ask(tenant.admin, '/api/cs', { ...post, headers: json, body: { message: 'x' } }));
    const own = await reply(await gateway.ask(tenant.cs, '/api/cs', { ...post, headers: json, body: { message: 'x' } }));
    expect((await gateway.ask(tenant.cs, `/api/turns/${own.turnId}`)).status).toBe(200);
    expect((await gateway.ask(tenant.cs, `/api/turns/${own.turnId}/events`)).status).toBe(200);
    for (const path of ['', '/events']) expect((await gateway.ask(tenant.cs, `/api/turns/${foreign.turnId}${path}`)).status).toBe(404);
    expect((await gateway.ask(tenant.cs, `/api/turns/${foreign.turnId}/cancel`, post)).status).toBe(404);
  });

  it('of another tenant do not exist', async () => {
    const other = await gateway.tenant();
    const { turnId } = await reply(await gateway.ask(other.admin, '/api/admin', { ...post, headers: json, body: { message: 'x' } }));
    for (const path of ['', '/events']) expect((await gateway.ask(tenant.admin, `/api/turns/${turnId}${path}`)).status).toBe(404);
  });

  it.each(['from their stream', 'from the session file'])('end for good with the last of them, %s', async (from) => {
    const { turnId } = await reply(await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'the end' } }));
    if (from === 'from the session file') await gateway.redis.flush();
    const path = `/api/turns/${turnId}/events`;
    const events = parseEvents(await (await gateway.ask(tenant.admin, path)).text());
    const over = await gateway.ask(tenant.admin, path, { headers: { 'Last-Event-ID': events.at(-1)?.id ?? '' } });
    expect([over.status, await over.text()]).toEqual([204, '']);
    const rest = await gateway.ask(tenant.admin, path, { headers: { 'Last-Event-ID': events.at(-2)?.id ?? '' } });
    expect(parseEvents(await rest.text())).toEqual(events.slice(-1));
  });

  it('are replayed from the start without Last-Event-ID, and refuse one that is none', async () => {
    const { turnId } = await reply(await gateway.ask(tenant.admin, '/api/admin', { ...post, headers: json, body: { message: 'again' } }));
    const events = parseEvents(await (await gateway.ask(tenant.admin, `/api/turns/${turnId}/events`)).text());
    expect(events.map(({ type }) => type).filter((type) => type !== 'text_delta')).toEqual(['session', 'done']);
    const wrong = await gateway.ask(tenant.admin, `/api/turns/${turnId}/events`, { headers: { 'Last-Event-ID': 'yesterday' } });
    expect(await problem(wrong)).toMatchObject({ status: 400, code: 'invalid_request' });
  });
});
