import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { EventEndpointTest, EventEndpointView, EventEndpointWithSecret, EventView, limits, ScheduleView } from '@concierge/contract';
import { WebhookReceiver } from '@concierge/testing';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let receiver: WebhookReceiver;
let tenant: TestTenant;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  gateway = await TestGateway.start({ outboundAllow: [receiver.place] });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});
beforeEach(async () => {
  tenant = await gateway.tenant();
  receiver.answer = () => ({ status: 204 });
});

async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  return gateway.ask(tenant.admin, `/api/${path}`, { method, ...(body === undefined ? {} : { body }) });
}

async function create(body: object = { url: receiver.url() }): Promise<EventEndpointWithSecret> {
  const response = await ask('POST', 'event-endpoints', body);
  expect(response.status).toBe(201);
  return EventEndpointWithSecret.parse(await response.json());
}

describe('event endpoints', () => {
  it('are made, read, changed, given a new secret and removed', async () => {
    const { secret, ...made } = await create({ url: 'https://example.com/', types: ['turn.failed', 'turn.failed'] });
    expect(made).toMatchObject({ types: ['turn.failed'], includeText: false, state: 'enabled', reason: null });
    const path = `event-endpoints/${made.id}`;
    expect(await (await gateway.ask(tenant.read, `/api/${path}`)).json()).toEqual(made);
    expect(z.array(EventEndpointView).parse(await (await ask('GET', 'event-endpoints')).json())).toEqual([made]);
    const changed = await ask('PATCH', path, { enabled: false, types: null });
    expect(await changed.json()).toMatchObject({ id: made.id, types: null, state: 'disabled', reason: 'It was disabled by its owner.' });
    const rotated = EventEndpointWithSecret.parse(await (await ask('POST', `${path}/rotate-secret`)).json());
    expect(rotated.secret).not.toBe(secret);
    expect((await ask('DELETE', path)).status).toBe(204);
    expect((await ask('GET', path)).status).toBe(404);
  });

  it('are for the owner, and no other key reads a secret', async () => {
    const { id, secret } = await create();
    for (const key of [tenant.read, tenant.cs]) {
      const refused = await gateway.ask(key, '/api/event-endpoints', { method: 'POST', body: { url: 'https://example.com/' } });
      expect(refused.status).toBe(403);
    }
    expect((await gateway.ask(tenant.cs, `/api/event-endpoints/${id}`)).status).toBe(403);
    expect(await (await ask('GET', 'event-endpoints')).text()).not.toContain(secret);
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, `/api/event-endpoints/${id}`)).status).toBe(404);
  });

  it('are no more than there may be: a schedule that needs one more is refused, as the documentation says', async () => {
    const made = await ask('POST', 'cron', { name: 'Report', message: 'Report.', schedule: { every: '1h' } });
    const { id } = ScheduleView.parse(await made.json());
    for (let number = 1; number <= limits.eventEndpointsMax; number += 1) {
      await tenant.scope.events.endpoints.create({ url: `https://example.com/${String(number)}` });
    }
    const refused = await ask('PATCH', `cron/${id}`, { deliver: { webhook: 'https://example.com/another' } });
    expect(await refused.json()).toMatchObject({ status: 409, code: 'conflict' });
    const document: unknown = await (await gateway.ask(undefined, '/openapi.json')).json();
    expect(document).toMatchObject({ paths: { '/api/cron/{id}': { patch: { responses: { 409: { description: expect.any(String) } } } } } });
  });

  it('refuse what is no address, and types that there are not', async () => {
    for (const body of [
      { url: 'file:///etc/passwd' },
      { url: 'https://a:b@example.com/' },
      { url: 'https://example.com/', types: ['turn.began'] },
      {},
    ])
      expect((await ask('POST', 'event-endpoints', body)).status).toBe(400);
  });

  it('report the outcome of a test, which is signed like any event', async () => {
    const { id, secret } = await create();
    const taken = EventEndpointTest.parse(await (await ask('POST', `event-endpoints/${id}/test`)).json());
    expect(taken).toMatchObject({ ok: true, status: 204, problem: null });
    const last = receiver.received.at(-1);
    expect(new Webhook(secret).verify(last?.body ?? '', { ...last?.headers })).toMatchObject({
      type: 'endpoint.test',
      data: { tenant: tenant.id },
    });
    receiver.answer = () => ({ status: 500 });
    const failed = EventEndpointTest.parse(await (await ask('POST', `event-endpoints/${id}/test`)).json());
    expect(failed).toMatchObject({ ok: false, status: 500, problem: 'It answered 500.' });
    const inside = await create({ url: gateway.url });
    const refused = EventEndpointTest.parse(await (await ask('POST', `event-endpoints/${inside.id}/test`)).json());
    expect(refused).toMatchObject({ ok: false, status: null });
    expect(refused.problem).toContain('has no public address');
  });
});

function at(hour: number): string {
  return new Date(Date.UTC(2026, 10, 21, hour)).toISOString();
}

async function addDeadLetter(hour: number): Promise<void> {
  const { events } = await gateway.tenants.open(tenant.id);
  const facts = { scheduleId: 's', name: 'Report', missedSince: null, reason: null };
  const data = { ...facts, runId: String(hour), scheduledAt: at(hour) };
  const [kept] = await events.emit({ type: 'schedule.missed', key: String(hour), at: at(hour), data });
  const event = await events.files.waiting(kept?.id ?? '');
  if (event === undefined) throw new Error('does not wait');
  await events.files.settle({ ...event, outcome: 'dead', reason: 'Every try has failed.' });
}

describe('the log of events', () => {
  it('is read page by page, and dead letters are sent anew', async () => {
    const { id: endpoint } = await create();
    for (let hour = 0; hour < 3; hour += 1) await addDeadLetter(hour);
    const seen: EventView[] = [];
    let next: string | null = `/api/events?limit=2&status=dead&endpoint=${endpoint}&type=schedule.missed`;
    for (let page = 0; page < 3 && next !== null; page += 1) {
      const response = await gateway.ask(tenant.read, next);
      seen.push(...z.array(EventView).parse(await response.json()));
      next = /<(?<link>[^>]+)>/u.exec(response.headers.get('link') ?? '')?.groups?.['link'] ?? null;
    }
    expect(seen.map(({ timestamp }) => timestamp)).toEqual([at(2), at(1), at(0)]);
    const redrive = `events/${seen[0]?.id ?? ''}/redrive`;
    const redriven = await ask('POST', redrive);
    expect([redriven.status, await redriven.json()]).toEqual([202, expect.objectContaining({ status: 'waiting', tries: 0 })]);
    expect((await ask('POST', redrive)).status).toBe(409);
    const all = await ask('POST', `event-endpoints/${endpoint}/redrive`, { since: '2026-11-21T01:00:00+01:00' });
    expect([all.status, await all.json()]).toEqual([202, { redriven: 2, more: false }]);
    expect((await ask('GET', `events/e_${'0'.repeat(40)}`)).status).toBe(404);
  });

  it('is sent anew by request while Redis does not answer: the request is on disk', async () => {
    const { id: endpoint } = await create();
    await addDeadLetter(0);
    const [dead] = z.array(EventView).parse(await (await ask('GET', `events?status=dead&endpoint=${endpoint}`)).json());
    gateway.redis.freeze();
    try {
      const redriven = await ask('POST', `events/${dead?.id ?? ''}/redrive`);
      expect([redriven.status, await redriven.json()]).toEqual([202, expect.objectContaining({ status: 'waiting', tries: 0 })]);
    } finally {
      gateway.redis.thaw();
    }
  });
});
