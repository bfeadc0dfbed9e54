import { createHash } from 'node:crypto';
import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { SessionView, TurnView } from '@concierge/contract';
import { eventually, callTools, finish, say } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, type Tenant } from './fixture.ts';
import type { ServerSentEvent } from './client.ts';

const TurnList = z.array(TurnView);

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start({ gateways: 2 }));
  tenant = await contract.tenant();
});

function listTypes(events: readonly ServerSentEvent[]): string[] {
  return events.map(({ type }) => type).filter((type, index, all) => type !== 'text_delta' || all[index - 1] !== 'text_delta');
}

function readContact(events: readonly ServerSentEvent[]): string {
  return String(events[0]?.data['contact_id']);
}

function readText(events: readonly ServerSentEvent[]): string {
  return events.map(({ type, data }) => (type === 'text_delta' ? String(data['delta']) : '')).join('');
}

function lastRequest(marker: string): (typeof contract.model.requests)[number] {
  const found = contract.model.requests.findLast(({ userText }) => userText.includes(marker));
  if (found === undefined) throw new Error(`the model was not asked about ${marker}`);
  return found;
}

describe('POST /api/admin', () => {
  promise(
    ['SI/post-api-admin/1', 'SI/post-api-admin/10', 'SI/what-the-service-does/14', 'SI/endpoints/1', 'SI/events/1', 'C/3-events/1'],
    'streams event, data and id lines, session first and done last',
    async () => {
      const answer = await tenant.as('admin').chat('admin', { message: '[[say:one two three|chunks=3|delay=15]]' });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/u);
      // A comment keeps the connection alive where a machine stands still.
      for (const block of answer.text.split('\n\n').filter((text) => text !== '' && text !== ':'))
        expect(block).toMatch(/^event: \w+\ndata: \{.*\}\nid: \d+-\d+$/u);
      expect(listTypes(answer.events())).toEqual(['session', 'text_delta', 'done']);
      const places = answer.events().map(({ id }) => id.split('-').map(Number));
      expect(places).toEqual(places.toSorted(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d));
    },
  );

  promise(['SI/post-api-admin/3', 'SI/tenant-and-api-key/2'], 'takes a key that begins with ck_live_', async () => {
    expect(tenant.admin).toMatch(/^ck_live_[\w-]+$/u);
    expect((await tenant.as('admin').ask('admin', { message: 'hi' })).status).toBe(200);
  });

  promise(['SI/post-api-admin/4'], 'takes application/json and nothing else', async () => {
    const headers = { 'content-type': 'text/plain' };
    const answer = await tenant.as('admin').request('/api/admin', { rawBody: '{"message":"x"}', headers });
    expect(answer.problem()).toMatchObject({ status: 415, code: 'unsupported_media_type' });
  });

  promise(
    ['SI/post-api-admin/5', 'C/3/11'],
    'answers one JSON object for Accept: application/json, and a stream for */*, for both and for none',
    async () => {
      const client = tenant.as('admin');
      const answer = await client.ask('admin', { message: '[[say:looking ]]+[[tools:list_files {}]] [[say:found]] ' });
      expect(answer.status).toBe(200);
      expect(answer.json()).toEqual({
        contact_id: expect.stringMatching(/^[0-9a-f]{32}$/u),
        turnId: expect.any(String),
        reply: 'looking found',
        toolCalls: [
          { id: expect.any(String), name: 'list_files', input: {}, output: expect.stringContaining('IDENTITY.md'), isError: false },
        ],
        usage: { inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
        finishReason: 'stop',
      });
      for (const accept of ['*/*', 'application/json, text/event-stream', 'text/event-stream']) {
        expect((await client.chat('admin', { message: 'hi' }, { accept })).headers.get('content-type')).toMatch(/event-stream/u);
      }
    },
  );

  promise(['SI/post-api-admin/7', 'SI/limits/1', 'C/3/2', 'SI/message-input/1'], 'counts 1 to 32000 code points', async () => {
    const client = tenant.as('admin');
    expect((await client.ask('admin', { message: '😀'.repeat(32_000) })).status).toBe(200);
    for (const message of ['', '😀'.repeat(32_001), 'a'.repeat(32_001)]) {
      expect((await client.ask('admin', { message })).problem()).toMatchObject({
        status: 400,
        code: 'invalid_request',
        errors: [{ path: 'message' }],
      });
    }
    expect((await client.ask('admin', {})).problem().errors).toEqual([expect.objectContaining({ path: 'message' })]);
  });

  promise(
    ['SI/post-api-admin/8', 'SI/message-input/2', 'SI/session/1'],
    'starts a fresh session without contact_id and continues the one it names',
    async () => {
      const client = tenant.as('admin');
      const first = (await client.chat('admin', { message: 'my name is Ann' })).events();
      const other = (await client.chat('admin', { message: 'hello' })).events();
      expect(readContact(other)).not.toBe(readContact(first));
      const second = (await client.chat('admin', { message: 'what-is-my-name', contact_id: readContact(first) })).events();
      expect(readContact(second)).toBe(readContact(first));
      const asked = lastRequest('what-is-my-name').body.messages.map(({ content }) => JSON.stringify(content));
      expect(asked.some((content) => content.includes('my name is Ann'))).toBe(true);
    },
  );

  promise(['C/3/1'], 'refuses unknown fields and takes a bearer token in place of X-API-Key', async () => {
    const strict = await tenant.as('admin').ask('admin', { message: 'x', contactId: 'typo' });
    expect(strict.problem()).toMatchObject({ status: 400, code: 'invalid_request' });
    const bearer = await contract.client().ask('admin', { message: 'x' }, { authorization: `Bearer ${tenant.admin}` });
    expect(bearer.status).toBe(200);
  });

  promise(['C/3/5'], 'answers 404 for a contact_id of no session, of another agent or of another tenant', async () => {
    const client = tenant.as('admin');
    const cs = (await client.chat('cs', { message: 'x', sender: 'bob' })).events();
    const other = await contract.tenant();
    const foreign = (await other.as('admin').chat('admin', { message: 'x' })).events();
    for (const contactId of ['f'.repeat(32), readContact(cs), readContact(foreign)]) {
      expect((await client.ask('admin', { message: 'x', contact_id: contactId })).problem()).toMatchObject({
        status: 404,
        code: 'not_found',
      });
    }
  });
});

describe('POST /api/cs', () => {
  promise(['SI/post-api-cs/1', 'SI/post-api-cs/3'], 'streams a reply by the same rules', async () => {
    const client = tenant.as('cs');
    expect(listTypes((await client.chat('cs', { message: 'hello' })).events())).toEqual(['session', 'text_delta', 'done']);
    expect((await client.ask('cs', { message: '' })).status).toBe(400);
  });

  promise(
    ['SI/post-api-cs/4', 'SI/message-input/3', 'SI/session/5', 'C/3/6'],
    'derives the session from agent, channel and sender',
    async () => {
      const expected = createHash('sha256').update(['cs', 'web', 'ann@example.com'].join('\u001F')).digest('hex').slice(0, 32);
      for (let round = 0; round < 2; round += 1) {
        expect(readContact((await tenant.as('cs').chat('cs', { message: 'x', sender: 'ann@example.com' })).events())).toBe(expected);
      }
      const admin = [await tenant.as('admin').chat('admin', { message: 'x' }), await tenant.as('admin').chat('admin', { message: 'x' })];
      expect(new Set(admin.map((answer) => readContact(answer.events()))).size).toBe(2);
    },
  );

  promise(
    ['SI/post-api-cs/5', 'SI/message-input/4', 'C/3/7'],
    'knows the channels by both names as one session, web by default',
    async () => {
      const client = tenant.as('cs');
      const contact = async (channel?: string): Promise<string> =>
        readContact((await client.chat('cs', { message: 'x', sender: 'zoe', ...(channel === undefined ? {} : { channel }) })).events());
      expect(await contact()).toBe(await contact('web'));
      const pairs = [
        ['channel_a', 'whatsapp'],
        ['channel_b', 'messenger'],
        ['channel_c', 'telegram'],
        ['channel_d', 'slack'],
      ] as const;
      const seen = new Set<string>();
      for (const [name, synonym] of pairs) {
        expect(await contact(synonym)).toBe(await contact(name));
        seen.add(await contact(name));
      }
      expect(seen.size).toBe(4);
      expect((await client.ask('cs', { message: 'x', channel: 'fax' })).status).toBe(400);
    },
  );

  promise(['C/3/4'], 'gives an anonymous contact a session of its own, and refuses a contact_id that is not the sender’s', async () => {
    const client = tenant.as('cs');
    const anonymous = readContact((await client.chat('cs', { message: 'one' })).events());
    expect(readContact((await client.chat('cs', { message: 'two', contact_id: anonymous })).events())).toBe(anonymous);
    expect(readContact((await client.chat('cs', { message: 'three' })).events())).not.toBe(anonymous);
    const own = readContact((await client.chat('cs', { message: 'x', sender: 'kim' })).events());
    expect((await client.ask('cs', { message: 'x', sender: 'kim', contact_id: own })).status).toBe(200);
    expect((await client.ask('cs', { message: 'x', sender: 'kim', contact_id: anonymous })).problem()).toMatchObject({
      status: 409,
      code: 'contact_mismatch',
    });
  });

  promise(
    ['SI/post-api-cs/6', 'SI/what-the-service-does/3', 'SI/tool-registry/1', 'C/3-events/10'],
    'offers cs its own tools only, and answers a call of any other with an error the model sees',
    async () => {
      contract.model.when(
        'try-write',
        [
          callTools([
            { name: 'write', args: { path: 'IDENTITY.md', content: 'mine' } },
            { name: 'nonsense', args: {} },
            { name: 'read', args: '{not json' },
          ]),
        ],
        [say('sorry')],
      );
      const events = (await tenant.as('cs').chat('cs', { message: 'try-write' })).events();
      const results = events.filter(({ type }) => type === 'tool_result');
      expect(results.map(({ data }) => data['isError'])).toEqual([true, true, true]);
      expect(events.at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
      expect(readText(events)).toBe('sorry');
      const names = JSON.stringify(lastRequest('try-write').raw);
      for (const tool of ['write', 'edit', 'list_files', 'search_files', 'sessions_list'])
        expect(names).not.toContain(`"name":"${tool}","description"`);
      expect(JSON.parse((await tenant.as('admin').get('/api/files/IDENTITY.md')).headers.get('etag') ?? '""')).not.toBe('');
      expect((await tenant.as('admin').get('/api/files/IDENTITY.md')).text).not.toBe('mine');
    },
  );
});

describe('the events of a turn', () => {
  promise(
    [
      'SI/events/2',
      'SI/events/3',
      'SI/events/4',
      'SI/events/5',
      'SI/events/6',
      'SI/events/7',
      'SI/events/10',
      'C/3-events/2',
      'C/3-events/3',
      'C/3-events/4',
      'C/3-events/5',
      'C/3-events/6',
      'C/3-events/8',
    ],
    'come in order with the data they promise',
    async () => {
      const events = (
        await tenant.as('admin').chat('admin', { message: '[[tools:read {"path":"IDENTITY.md"}]] [[say:that is me]] [[usage:10,5]]' })
      ).events();
      expect(listTypes(events)).toEqual(['session', 'tool_call_start', 'tool_call_end', 'tool_result', 'text_delta', 'done']);
      const data = new Map(events.map((event) => [event.type, event.data]));
      const id = data.get('tool_call_start')?.['id'];
      expect(data.get('session')).toEqual({ contact_id: expect.any(String), turnId: expect.any(String) });
      expect(data.get('tool_call_start')).toEqual({ id: expect.any(String), name: 'read', input: { path: 'IDENTITY.md' } });
      expect(data.get('tool_call_end')).toEqual({ id, name: 'read', durationMs: expect.any(Number), isError: false });
      expect(data.get('tool_result')).toEqual({ id, name: 'read', output: expect.any(String), isError: false });
      expect(data.get('done')).toEqual({ inputTokens: expect.any(Number), outputTokens: expect.any(Number), finishReason: 'stop' });
      for (const event of events.filter(({ type }) => type === 'text_delta')) expect(event.data['delta']).not.toBe('');
    },
  );

  promise(['SI/events/11'], 'end with done when the session is stored', async () => {
    const events = (await tenant.as('admin').chat('admin', { message: '[[say:stored]]' })).events();
    const file = await (await contract.system.scope(tenant.tenantId)).sessions.load(readContact(events));
    expect(file?.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  promise(
    ['SI/events/8', 'SI/errors/2', 'C/3-events/9'],
    'end with error when the provider refuses, and JSON answers its status',
    async () => {
      const client = tenant.as('admin');
      const events = (await client.chat('admin', { message: '[[fail:400 x9]] [[say:never]]' })).events();
      expect(events.at(-1)).toEqual({
        id: expect.any(String),
        type: 'error',
        data: { code: 'provider_error', message: expect.any(String), retryable: expect.any(Boolean), turnId: events[0]?.data['turnId'] },
      });
      expect(listTypes(events)).toEqual(['session', 'error']);
      expect((await client.ask('admin', { message: '[[fail:400 x9]] [[say:no]]' })).problem()).toMatchObject({
        status: 502,
        code: 'provider_error',
      });
    },
  );

  promise(['C/3-events/7'], 'say text_reset when a cut reply comes again', async () => {
    const events = (await tenant.as('admin').chat('admin', { message: '[[fail:cut x1]] [[say:whole again]]' })).events();
    const reset = events.findLastIndex(({ type }) => type === 'text_reset');
    expect(reset).toBeGreaterThan(0);
    expect(readText(events.slice(reset))).toBe('whole again');
    expect(events.at(-1)?.type).toBe('done');
  });

  promise(['SI/limits/5', 'SI/what-the-service-does/9'], 'stop calling tools at maxTurns and still answer', async () => {
    const bounded = await contract.tenant();
    const patched = await bounded.as('admin').request('/api/tenant', { method: 'PATCH', body: { agents: { admin: { maxTurns: 2 } } } });
    expect(patched.status).toBe(200);
    const message = `[[tools:list_files {}]] [[tools:list_files {}]] [[say:enough]]`;
    const events = (await bounded.as('admin').chat('admin', { message })).events();
    expect(events.filter(({ type }) => type === 'tool_call_start')).toHaveLength(2);
    expect(readText(events)).toBe('enough');
    expect(events.at(-1)?.data['finishReason']).toBe('max_turns');
    expect(JSON.stringify(contract.model.requests.at(-1)?.raw)).not.toContain('"tools":[{');
  });

  promise(['C/3-events/8', 'C/3-events/10'], 'never run the tools of a reply that was cut by length', async () => {
    contract.model.when('cut-by-length', [
      say('half'),
      callTools([{ name: 'write', args: { path: 'memory/cut.md', content: 'x' } }]),
      finish('length'),
    ]);
    const events = (await tenant.as('admin').chat('admin', { message: 'cut-by-length' })).events();
    expect(listTypes(events)).toEqual(['session', 'text_delta', 'done']);
    expect(events.at(-1)?.data['finishReason']).toBe('length');
    expect((await tenant.as('admin').get('/api/files/memory/cut.md')).status).toBe(404);
  });

  promise(['C/3-events/6'], 'cut a long output at 16 KiB and say so', async () => {
    const client = tenant.as('admin');
    await client.request('/api/files/memory/long.md', {
      method: 'PUT',
      rawBody: 'line of text\n'.repeat(4000),
      headers: { 'content-type': 'text/markdown' },
    });
    const events = (await client.chat('admin', { message: '[[tools:read {"path":"memory/long.md"}]] [[say:long]]' })).events();
    const result = events.find(({ type }) => type === 'tool_result')?.data;
    expect(result?.['truncated']).toBe(true);
    expect(Buffer.byteLength(String(result?.['output']))).toBeLessThanOrEqual(16 * 1024);
  });
});

describe('a turn and its clients', () => {
  promise(['C/3/8'], 'are one for one Idempotency-Key and body, on any gateway', async () => {
    const headers = { 'idempotency-key': 'order-17' };
    const message = '[[say:once|chunks=5|delay=20]]';
    const answers = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => await tenant.as('admin', index % 2).chat('admin', { message }, headers)),
    );
    expect(new Set(answers.map((answer) => answer.events()[0]?.data['turnId'])).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get('idempotency-replayed') === 'true')).toHaveLength(5);
    for (const answer of answers) expect(readText(answer.events())).toBe('once');
    expect((await tenant.as('admin').ask('admin', { message: 'other' }, headers)).problem()).toMatchObject({
      status: 422,
      code: 'idempotency_conflict',
    });
    expect((await tenant.as('admin').ask('admin', { message }, { 'idempotency-key': 'x'.repeat(256) })).status).toBe(400);
  });

  promise(['C/3/9'], 'wait in order, are refused, or interrupt, as the caller asks', async () => {
    const client = tenant.as('cs');
    const open = await client.open('/api/cs', { body: { message: '[[hang]]', sender: 'busy' } });
    const second = client.chat('cs', { message: '[[say:second]]', sender: 'busy' });
    const count = async (status: string): Promise<number> =>
      TurnList.parse((await tenant.as('admin').get(`/api/turns?status=${status}`)).json()).length;
    // The one that waits is the second: the first may still have waited for a worker when the second was on its way.
    await eventually(async () => (await count('running')) === 1 && (await count('waiting')) === 1);
    const refused = await client.request('/api/cs?busy=reject', { body: { message: 'x', sender: 'busy' } });
    expect(refused.problem()).toMatchObject({ status: 409, code: 'session_busy' });
    const interrupting = await client.request('/api/cs?busy=interrupt', { body: { message: '[[say:third]]', sender: 'busy' } });
    expect(await open.text()).toContain('"finishReason":"cancelled"');
    expect((await second).events().at(-1)?.type).toBe('done');
    expect(readText(interrupting.events())).toBe('third');
    const contact = readContact(interrupting.events());
    const session = await tenant.as('admin').get(`/api/sessions/${contact}`);
    expect(session.text.indexOf('second')).toBeLessThan(session.text.indexOf('third'));
  });

  promise(['C/3/9'], 'are refused when fifty wait already', async () => {
    const client = tenant.as('cs');
    const stop = new AbortController();
    const open = Array.from(
      { length: 51 },
      async () => await client.open('/api/cs', { body: { message: '[[hang]]', sender: 'crowd' }, signal: stop.signal }),
    );
    await Promise.all(open);
    const refused = await client.ask('cs', { message: 'one more', sender: 'crowd' });
    expect(refused.problem()).toMatchObject({ status: 429, code: 'too_many_waiting' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const turns = TurnList.parse((await tenant.as('admin').get('/api/turns?limit=100')).json());
    for (const { id, status } of turns)
      if (status !== 'done') await tenant.as('admin').request(`/api/turns/${id}/cancel`, { method: 'POST' });
    stop.abort();
  });

  promise(['C/3/10'], 'part without harm: the turn goes on and is resumed on another gateway at any event', async () => {
    const stop = new AbortController();
    const response = await tenant
      .as('admin')
      .open('/api/admin', { body: { message: '[[say:a b c d e f g h|chunks=8|delay=30]]' }, signal: stop.signal });
    const reader = response.body?.getReader();
    let first = '';
    // What comes first may be a comment.
    while (!first.includes('"turnId"')) {
      const piece = await reader?.read();
      if (piece?.done !== false) break;
      first += new TextDecoder().decode(piece.value);
    }
    stop.abort();
    const turnId = /"turnId":"([^"]+)"/u.exec(first)?.[1] ?? '';
    const all = (await tenant.as('admin', 1).get(`/api/turns/${turnId}/events`)).events();
    expect(readText(all)).toBe('a b c d e f g h');
    for (const [index, { id }] of all.entries()) {
      const rest = (await tenant.as('admin', index % 2).get(`/api/turns/${turnId}/events`, { 'last-event-id': id })).events();
      expect(rest).toEqual(all.slice(index + 1));
    }
  });

  promise(['C/3/10', 'C/3-events/8'], 'can be cancelled: what was said is kept', async () => {
    const response = await tenant.as('admin').open('/api/admin', { body: { message: '[[say:never ending story]]+[[hang]]' } });
    const reader = response.body?.getReader();
    let seen = '';
    while (!seen.includes('text_delta')) seen += new TextDecoder().decode((await reader?.read())?.value);
    const turnId = /"turnId":"([^"]+)"/u.exec(seen)?.[1] ?? '';
    expect((await tenant.as('admin', 1).request(`/api/turns/${turnId}/cancel`, { method: 'POST' })).status).toBeLessThan(300);
    const all = (await tenant.as('admin').get(`/api/turns/${turnId}/events`)).events();
    expect(all.at(-1)?.data['finishReason']).toBe('cancelled');
    const session = SessionView.parse((await tenant.as('admin').get(`/api/sessions/${readContact(all)}`)).json());
    expect(session.messages.at(-1)).toMatchObject({ role: 'assistant', text: readText(all) });
  });
});
