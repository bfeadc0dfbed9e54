import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { limits, WidgetOpening, WidgetView } from '@concierge/contract';
import { connectRedis, createLog, redisReady } from '@concierge/runtime';
import { deriveSessionId } from '@concierge/tenant';
import { gate, untilAborted } from '@concierge/testing';
import { RateLimits } from '@concierge/turn';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { parseEvents, joinText } from './sse.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';
import { readCode, readConversation, enableWidget, newVisitor, readReply, shop, type WidgetVisitor } from './widget-visitor.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let key: string;
let visitor: WidgetVisitor;

interface Reading {
  text: string;
  readonly reader: ReadableStreamDefaultReader<string> | undefined;
}

/** Reads a stream on until it is enough, or its end. @returns all of it so far */
async function readOn(reading: Reading, isEnough: (text: string) => boolean): Promise<string> {
  for (let read = await reading.reader?.read(); read?.done === false; read = await reading.reader?.read()) {
    reading.text += read.value;
    if (isEnough(reading.text)) break;
  }
  return reading.text;
}

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
  key = await enableWidget(tenant);
  visitor = newVisitor(gateway, key);
});

describe('the settings of the widget', () => {
  it('are read by read and changed by admin; the secret is shown once', async () => {
    const body = { enabled: true, origins: [shop], appearance: { title: 'Ask us', colour: '#aa0000' } };
    const put = WidgetView.parse(await (await gateway.ask(tenant.admin, '/api/widget', { method: 'PUT', body })).json());
    expect(put).toMatchObject({ key, requireSenderToken: false, secret: 'unset', appearance: { title: 'Ask us', position: 'right' } });
    const made = await gateway.ask(tenant.admin, '/api/widget/rotate-secret', { method: 'POST' });
    const { secret } = z.object({ secret: z.string().min(40) }).parse(await made.json());
    const shown = await (await gateway.ask(tenant.read, '/api/widget')).text();
    expect(WidgetView.parse(JSON.parse(shown))).toMatchObject({ key, secret: 'set' });
    expect(shown).not.toContain(secret);
    for (const denied of [tenant.cs, tenant.read])
      expect(await readCode(await gateway.ask(denied, '/api/widget', { method: 'PUT', body }))).toEqual([403, 'scope_required']);
  });

  it.each([
    ['an origin with a path', { origins: ['https://shop.example/'] }],
    ['an origin in capitals', { origins: ['https://Shop.example'] }],
    ['plain http of another machine', { origins: ['http://shop.example'] }],
    ['every origin', { origins: ['*'] }],
    ['null', { origins: ['null'] }],
    ['a colour that is none', { appearance: { colour: 'red;}*{display:none' } }],
    ['a title with a line break', { appearance: { title: 'a\nb' } }],
    ['a theme that is none', { display: { theme: 'red' } }],
    ['an offset out of the window', { display: { offsetBottom: 401 } }],
    ['texts in a language that the script does not speak', { display: { texts: { it: { title: 'Ciao' } } } }],
    ['hours that end before they begin', { team: { hours: [{ day: 'mon', from: '17:00', until: '09:00' }] } }],
    ['an address that is none', { team: { alert: { afterMinutes: 5, email: 'owner' } } }],
    ['what is unknown', { enabled: true, html: '<b>' }],
    ['sender tokens without a secret', { requireSenderToken: true }],
  ])('refuse %s', async (_what, body) => {
    expect(await readCode(await gateway.ask(tenant.admin, '/api/widget', { method: 'PUT', body }))).toEqual([400, 'invalid_request']);
  });

  it('have a display beside the appearance, which a page reads with the defaults of what is left out', async () => {
    const display = { theme: 'dark', texts: { de: { greeting: 'Moin' } } };
    await gateway.ask(tenant.admin, '/api/widget', { method: 'PUT', body: { enabled: true, origins: [shop], display } });
    expect(await (await visitor.ask('/widget/settings')).json()).toMatchObject({
      appearance: { title: 'Chat' },
      display: { ...display, offsetSide: 20, offsetBottom: 20, launcher: 'shown' },
    });
  });

  it('have office hours, which reach a page as moments, and nothing else of them does', async () => {
    await tenant.scope.updateSettings({ timezone: 'Asia/Tokyo' });
    const team = { hours: [{ day: 'wed', from: '09:00', until: '17:30' }], alert: { afterMinutes: 5, email: 'owner@shop.example' } };
    await gateway.ask(tenant.admin, '/api/widget', { method: 'PUT', body: { enabled: true, origins: [shop], team } });
    const shown = await (await visitor.ask('/widget/settings')).text();
    const { openings } = z.object({ openings: z.array(WidgetOpening) }).parse(JSON.parse(shown));
    expect(openings.length).toBeGreaterThanOrEqual(1);
    for (const { from, until } of openings) {
      expect([from, until].map((at) => at.slice(11))).toEqual(['00:00:00.000Z', '08:30:00.000Z']);
      expect(new Date(from).getUTCDay()).toBe(3);
    }
    expect(shown).not.toMatch(/owner@|Tokyo|afterMinutes|"wed"/u);
    await gateway.ask(tenant.admin, '/api/widget', { method: 'PUT', body: { enabled: true, origins: [shop] } });
    expect(await (await visitor.ask('/widget/settings')).json()).toMatchObject({ openings: null });
  });

  it('stop the old key when it is replaced', async () => {
    const rotated = WidgetView.parse(await (await gateway.ask(tenant.admin, '/api/widget/rotate-key', { method: 'POST' })).json());
    expect(await readCode(await visitor.say('x'))).toEqual([401, 'invalid_key']);
    await readReply(await newVisitor(gateway, rotated.key ?? '').say('x'));
  });
});

describe('a visitor', () => {
  it('talks to cs, and finds its messages again: no tools, no figures', async () => {
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'Let me look.' } });
      writer.emit({ type: 'tool_call_start', data: { id: 'c1', name: 'memory_search', input: { query: 'secret stock list' } } });
      writer.emit({ type: 'tool_call_progress', data: { id: 'c1', name: 'memory_search', delta: 'secret' } });
      writer.emit({ type: 'tool_call_end', data: { id: 'c1', name: 'memory_search', durationMs: 1, isError: false } });
      writer.emit({ type: 'tool_result', data: { id: 'c1', name: 'memory_search', output: 'secret margins', isError: false } });
      writer.emit({ type: 'text_delta', data: { delta: 'Two are left.' } });
      await writer.flush();
    };
    const response = await visitor.say('How many?', { Accept: 'text/event-stream' });
    const text = await response.text();
    expect(text).not.toMatch(/secret|memory_search|Tokens|contact_id/u);
    const events = parseEvents(text);
    expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'step', 'text_delta', 'done']);
    expect(events.at(-1)?.data).toEqual({ finishReason: 'stop' });
    const { messages, withPerson, askAgainSeconds } = await readConversation(visitor);
    expect(messages).toMatchObject([
      { from: 'visitor', text: 'How many?', turnId: events[0]?.data['turnId'] },
      { from: 'agent', text: 'How many?' },
    ]);
    expect([withPerson, askAgainSeconds]).toEqual([false, limits.widgetAskSeconds]);
    const turns = await (await gateway.ask(tenant.admin, '/api/turns')).json();
    expect(turns).toMatchObject([{ agent: 'cs', channel: 'web', origin: 'api' }]);
  });

  it('gets one JSON object when only that is accepted', async () => {
    expect(await readReply(await visitor.say('hello there'))).toEqual({
      turnId: expect.any(String),
      reply: 'hello there',
      finishReason: 'stop',
    });
  });

  it('is one sender for good, whose secret is written down nowhere', async () => {
    const secret = 'a1'.repeat(16);
    for (const text of ['one', 'two']) await readReply(await visitor.say(text, { 'X-Widget-Visitor': secret }));
    const sender = `visitor:${createHash('sha256').update(secret).digest('hex')}`;
    const session = await tenant.scope.sessions.load(deriveSessionId('cs', 'web', sender));
    expect(session?.messages).toHaveLength(4);
    expect(JSON.stringify(session)).not.toContain(secret);
  });

  it('sees nothing of another one, whatever it asks for', async () => {
    const { turnId } = await readReply(await visitor.say('my secret'));
    const other = newVisitor(gateway, key);
    expect((await readConversation(other)).messages).toEqual([]);
    expect(await readCode(await other.ask(`/widget/turns/${turnId}/events`))).toEqual([404, 'not_found']);
    expect(await readCode(await other.ask(`/widget/turns/${turnId}/cancel`, { method: 'POST' }))).toEqual([404, 'not_found']);
    const admins = await gateway.ask(tenant.admin, '/api/admin', {
      method: 'POST',
      body: { message: 'x' },
      headers: { Accept: 'application/json' },
    });
    const { turnId: foreign } = z.object({ turnId: z.string() }).parse(await admins.json());
    expect(await readCode(await visitor.ask(`/widget/turns/${foreign}/events`))).toEqual([404, 'not_found']);
    expect((await visitor.ask(`/widget/turns/${turnId}/events`)).status).toBe(200);
  });

  it('has a turn that no key for cs can look at', async () => {
    const { turnId } = await readReply(await visitor.say('mine'));
    expect((await gateway.ask(tenant.cs, `/api/turns/${turnId}`)).status).toBe(404);
    expect((await gateway.ask(tenant.admin, `/api/turns/${turnId}`)).status).toBe(200);
  });

  it('resumes after the last event it has seen, and gets the rest once', async () => {
    const more = gate();
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'first ' } });
      await writer.flush();
      await more.opened;
      writer.emit({ type: 'text_delta', data: { delta: 'second' } });
    };
    const response = await visitor.say('x', { Accept: 'text/event-stream' });
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes('first ') && text.endsWith('\n\n')) break;
    }
    const before = parseEvents(text);
    more.open();
    const turnId = String(before[0]?.data['turnId']);
    const resumed = await visitor.ask(`/widget/turns/${turnId}/events`, { own: { 'Last-Event-ID': before.at(-1)?.id } });
    expect(resumed.headers.get('access-control-allow-origin')).toBe(shop);
    const after = parseEvents(await resumed.text());
    expect(joinText([...before, ...after])).toBe('first second');
  });

  it('accepts the same message once, however often it is sent', async () => {
    const again = { 'Idempotency-Key': 'k1' };
    const first = await readReply(await visitor.say('once', again));
    const second = await visitor.say('once', again);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect((await readReply(second)).turnId).toBe(first.turnId);
    expect((await readReply(await newVisitor(gateway, key).say('once', again))).turnId).not.toBe(first.turnId);
    expect((await readConversation(visitor)).messages).toHaveLength(2);
  });

  it('stops its own answer', async () => {
    gateway.script = async ({ signal }) => untilAborted(signal);
    const response = await visitor.say('x', { Accept: 'text/event-stream' });
    const reading = { text: '', reader: response.body?.pipeThrough(new TextDecoderStream()).getReader() };
    // What comes first may be a comment.
    const begun = await readOn(reading, (text) => text.includes('"turnId"') && text.endsWith('\n\n'));
    const turnId = /"turnId":"(?<id>t_[0-9a-f]+)"/u.exec(begun)?.groups?.['id'] ?? '';
    expect((await visitor.ask(`/widget/turns/${turnId}/cancel`, { method: 'POST' })).status).toBe(202);
    expect(await readOn(reading, () => false)).toContain('"finishReason":"cancelled"');
  });

  it('gets what staff write, marked as such, and asks again sooner meanwhile', async () => {
    const { turnId } = await readReply(await visitor.say('help'));
    const [item] = (await tenant.scope.index.listSessions({ limit: 1 })).items;
    const session = await tenant.scope.sessions.load(item?.id ?? '');
    if (session === undefined) throw new Error('no session');
    await tenant.scope.handoffs.request(session.id, { reason: 'asked', by: { kind: 'operator' } });
    const said = {
      id: 'p1',
      turnId: 't_person',
      at: new Date().toISOString(),
      role: 'assistant',
      text: 'Jo here.',
      by: { kind: 'operator' },
    } as const;
    const tool = { id: 'x1', turnId, at: said.at, role: 'tool', callId: 'c', name: 'read', output: 'internal', isError: false } as const;
    await tenant.scope.sessions.publish({ ...session, revision: session.revision + 1, messages: [...session.messages, tool, said] });
    expect(await readConversation(visitor)).toMatchObject({
      messages: [{ from: 'visitor' }, { from: 'agent' }, { from: 'person', text: 'Jo here.' }],
      withPerson: true,
      askAgainSeconds: limits.widgetAskWithPersonSeconds,
    });
  });

  it('is not sent again what it knows', async () => {
    await readReply(await visitor.say('one'));
    const tag = (await visitor.ask('/widget/conversation')).headers.get('etag') ?? '';
    const same = await visitor.ask('/widget/conversation', { own: { 'If-None-Match': tag } });
    expect([same.status, await same.text()]).toEqual([304, '']);
    await readReply(await visitor.say('two'));
    expect((await visitor.ask('/widget/conversation', { own: { 'If-None-Match': tag } })).status).toBe(200);
  });

  it.each([
    ['no secret', { 'X-Widget-Visitor': undefined }, [400, 'invalid_request']],
    ['a short one', { 'X-Widget-Visitor': 'a'.repeat(31) }, [400, 'invalid_request']],
    ['one of odd characters', { 'X-Widget-Visitor': `${'a'.repeat(32)}:` }, [400, 'invalid_request']],
    ['a token beside it', { 'X-Widget-Token': 'x.y' }, [400, 'invalid_request']],
    ['no key', { Authorization: undefined }, [401, 'missing_key']],
    ['an API key', { Authorization: 'Bearer ck_live_x' }, [401, 'invalid_key']],
    ['two keys', { 'X-Widget-Key': `ck_pub_other_${'0'.repeat(32)}` }, [401, 'invalid_key']],
    ['a key of no tenant', { Authorization: `Bearer ck_pub_nobody_${'0'.repeat(32)}` }, [401, 'invalid_key']],
  ])('with %s is refused', async (_what, own, expected) => {
    expect(await readCode(await visitor.say('x', own))).toEqual(expected);
    expect(await tenant.scope.inbox.turnIds()).toEqual([]);
  });

  it.each([
    ['an unknown field', { message: 'x', sender: 'user:ann' }],
    ['no message', {}],
    ['a message that is too long', { message: 'x'.repeat(limits.messageMaxCharacters + 1) }],
  ])('is refused %s', async (_what, body) => {
    const own = { 'Content-Type': 'application/json' };
    expect(await readCode(await visitor.ask('/widget/messages', { method: 'POST', body: JSON.stringify(body), own }))).toEqual([
      400,
      'invalid_request',
    ]);
  });

  it('is refused while the widget is switched off, and while the tenant is suspended', async () => {
    await gateway.tenants.setSuspended(tenant.id, true);
    expect(await readCode(await visitor.say('x'))).toEqual([403, 'tenant_suspended']);
    await gateway.tenants.setSuspended(tenant.id, false);
    await enableWidget(tenant, { enabled: false });
    expect(await readCode(await visitor.say('x'))).toEqual([401, 'invalid_key']);
  });
});

describe('how much visitors may ask', () => {
  it('is bounded for each of them', async () => {
    gateway.script = async () => undefined;
    const statuses: number[] = [];
    for (let index = 0; index < limits.widgetMessagesPerVisitorMinute + 1; index += 1) {
      const response = await visitor.say('x');
      statuses.push(response.status);
      if (response.status !== 429) continue;
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(response.headers.get('access-control-expose-headers')).toContain('Retry-After');
    }
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    expect(statuses.at(-1)).toBe(429);
    await readReply(await newVisitor(gateway, key).say('x'));
  });

  it('is bounded for all of a tenant together', async () => {
    const { url } = gateway.redis;
    await fillWindow(url, `${tenant.id}:widget`, limits.widgetMessagesPerMinute);
    expect(await readCode(await visitor.say('x'))).toEqual([429, 'rate_limited']);
    const other = await gateway.tenant();
    await readReply(await newVisitor(gateway, await enableWidget(other)).say('x'));
  });

  it('counts as requests of the tenant', async () => {
    const preview = await gateway.tenant('preview');
    const guest = newVisitor(gateway, await enableWidget(preview));
    const response = await guest.ask('/widget/settings');
    expect(response.headers.get('ratelimit')).toContain(`r=${String(limits.previewRequestsPerHour - 1)}`);
    await fillWindow(gateway.redis.url, preview.id, limits.previewRequestsPerHour);
    expect(await readCode(await guest.ask('/widget/settings'))).toEqual([429, 'rate_limited']);
  });

  it('never takes all of the tenant’s requests: its owner is not locked out', async () => {
    const preview = await gateway.tenant('preview');
    const guest = newVisitor(gateway, await enableWidget(preview));
    const asked = Array.from({ length: limits.previewRequestsPerHour }, async () => {
      const answer = await guest.ask('/widget/settings');
      await answer.text();
      return answer.status;
    });
    const statuses = await Promise.all(asked);
    expect(statuses.filter((status) => status === 200)).toHaveLength(limits.previewRequestsPerHour / 2);
    expect((await gateway.ask(preview.admin, '/api/widget')).status).toBe(200);
  });
});

/** Spends a window as that many requests would. */
async function fillWindow(url: string, window: string, requests: number): Promise<void> {
  const redis = connectRedis({ url, role: 'producer', log: createLog({ service: 'test', level: 'silent' }) });
  await redisReady(redis, 60_000);
  const rateLimits = new RateLimits(redis);
  await Promise.all(Array.from({ length: requests }, async () => rateLimits.take(window, { limit: requests, windowSeconds: 3600 })));
  redis.disconnect();
}

describe('/widget.js', () => {
  it('is one small script for pages of every origin, which a browser keeps', async () => {
    const response = await gateway.ask(undefined, '/widget.js', { headers: { 'Accept-Encoding': 'gzip' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(response.headers.get('cross-origin-resource-policy')).toBe('cross-origin');
    expect(response.headers.get('cache-control')).toContain('max-age');
    expect(Number(response.headers.get('content-length'))).toBeLessThan(20_000);
    const script = await response.text();
    expect(script).not.toMatch(/\beval\b|new Function|innerHTML|insertAdjacentHTML|document\.write|sourceMappingURL/u);
    const etag = response.headers.get('etag') ?? '';
    const again = await gateway.ask(undefined, '/widget.js', { headers: { 'Accept-Encoding': 'gzip', 'If-None-Match': etag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const plain = await gateway.ask(undefined, '/widget.js', { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('etag')).not.toBe(etag);
    expect(await plain.text()).toBe(script);
  });
});
