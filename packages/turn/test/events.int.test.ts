import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { HOUR_MS, limits, type EventEndpointWithSecret } from '@concierge/contract';
import { eventually, type ReceivedWebhook, type WebhookReceiver } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { Webhook } from 'standardwebhooks';
import { TestEvents, turnEnded } from './test-events.ts';

let fixture: TestEvents;
let receiver: WebhookReceiver;

setUpEach(async (stack) => {
  fixture = stack.use(await TestEvents.start());
  receiver = await fixture.receiver();
});

async function endpoint(
  more: { url?: string; types?: ['turn.failed'] | []; includeText?: boolean } = {},
): Promise<EventEndpointWithSecret> {
  return (await fixture.scope()).events.endpoints.create({ url: receiver.url(), ...more });
}

function startWorker(): void {
  fixture.worker({ allow: [receiver.place] });
}

function readIds(received: readonly ReceivedWebhook[]): Set<string | undefined> {
  return new Set(received.map(({ headers }) => headers['webhook-id']));
}

describe('an event', () => {
  it('arrives once, in the form and with the signature of Standard Webhooks', async () => {
    const { secret, id: endpointId } = await endpoint();
    startWorker();
    await fixture.turnEnds('t_1');
    const [webhook] = await receiver.until(1);
    const { headers, body }: Pick<ReceivedWebhook, 'headers' | 'body'> = webhook ?? { headers: {}, body: '' };
    expect(JSON.parse(body)).toEqual({
      type: 'turn.completed',
      timestamp: '2026-11-21T20:00:00.000Z',
      data: expect.objectContaining({ tenant: 'acme', turnId: 't_1', agent: 'cs', finishReason: 'stop' }),
    });
    expect(headers['content-type']).toBe('application/json');
    expect(new Webhook(secret).verify(body, { ...headers })).toEqual(JSON.parse(body));
    const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
    const digest = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      .update(signed)
      .digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${digest}`);
    expect(() => new Webhook(secret).verify(`${body} `, { ...headers })).toThrow('No matching signature');
    const event = await fixture.eventThat(({ status }) => status === 'sent');
    expect(event).toMatchObject({ id: headers['webhook-id'], endpointId, tries: 1, log: [{ status: 204, error: null }], nextTryAt: null });
    // Counted a moment after it is on disk.
    await eventually(() => fixture.tried.length > 0);
    expect(fixture.tried).toEqual(['turn.completed sent']);
  });

  it('goes only to endpoints that subscribe to it, with the reply where they ask for it', async () => {
    const other = await fixture.receiver();
    await endpoint({ url: other.url('/failures'), types: ['turn.failed'] });
    await endpoint({ url: other.url('/schedules'), types: [] });
    await endpoint({ url: receiver.url('/plain') });
    await endpoint({ url: receiver.url('/text'), includeText: true });
    fixture.worker({ allow: [receiver.place, other.place] });
    await fixture.turnEnds('t_1', 'We are open.');
    const received = await receiver.until(2);
    const texts = new Map(received.map(({ path, body }) => [path, body.includes('We are open.')]));
    expect(texts).toEqual(
      new Map([
        ['/plain', false],
        ['/text', true],
      ]),
    );
    await eventually(async () => (await fixture.events()).every(({ status }) => status === 'sent'));
    expect(other.received).toEqual([]);
  });

  it('is one, however often and by whichever process it is emitted', async () => {
    await endpoint();
    await Promise.all([fixture.turnEnds('t_1'), fixture.turnEnds('t_1'), fixture.turnEnds('t_1')]);
    startWorker();
    await fixture.eventThat(({ status }) => status === 'sent');
    await fixture.turnEnds('t_1');
    await fixture.turnEnds('t_2');
    await eventually(async () => (await fixture.events()).filter(({ status }) => status === 'sent').length === 2);
    expect(receiver.received).toHaveLength(2);
    expect(await fixture.events()).toHaveLength(2);
  });

  it('is signed with both secrets for a day after a new one was made', async () => {
    const { id, secret: old } = await endpoint();
    const { secret } = await (await fixture.scope()).events.endpoints.rotateSecret(id);
    startWorker();
    await fixture.turnEnds('t_1');
    const [webhook] = await receiver.until(1);
    expect(webhook?.headers['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const one of [old, secret]) expect(new Webhook(one).verify(webhook?.body ?? '', { ...webhook?.headers })).toBeDefined();
  });

  it('is tried again for days with the same id, then is a dead letter, and can be sent anew', async () => {
    receiver.answer = () => ({ status: 500 });
    await endpoint();
    startWorker();
    await fixture.turnEnds('t_1');
    const waits = [5 / 3600, 5 / 60, 0.5, 2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS);
    for (const [index, waitMs] of waits.entries()) {
      const event = await fixture.eventThat(({ tries }) => tries === index + 1);
      const planned = Date.parse(event.nextTryAt ?? '') - Date.parse(event.log.at(-1)?.at ?? '') - fixture.aheadMs;
      expect(planned).toBeGreaterThanOrEqual(waitMs);
      expect(planned).toBeLessThan(waitMs * 1.2 + 60_000);
      await fixture.later(waitMs * 1.1 + 60_000);
    }
    const dead = await fixture.eventThat(({ status }) => status === 'dead');
    expect(dead).toMatchObject({ tries: 10, reason: 'Every try has failed. The last one: It answered 500.', nextTryAt: null });
    expect(dead.log).toHaveLength(10);
    // A try is told of after its outcome is stored.
    await eventually(() => fixture.tried.length >= 10);
    expect(fixture.tried.at(-1)).toBe('turn.completed dead');
    receiver.answer = () => ({ status: 200 });
    const scope = await fixture.scope();
    await fixture.outgoing.wake(scope, [await scope.events.redrive(dead.id)]);
    const sent = await fixture.eventThat(({ status }) => status === 'sent');
    expect(sent).toMatchObject({ id: dead.id, tries: 1, reason: null });
    expect(sent.log).toHaveLength(11);
    expect(receiver.received).toHaveLength(11);
    expect(readIds(receiver.received)).toEqual(new Set([dead.id]));
    await expect(scope.events.redrive(dead.id)).rejects.toMatchObject({ code: 'conflict' });
  });

  it.each([HOUR_MS, -HOUR_MS])(
    'is tried again when it is time, although the clock of the worker that tried is %i ms off',
    async (clockOffMs) => {
      receiver.answer = () => ({ status: 500 });
      await endpoint();
      await fixture.holdTime();
      const other = fixture.worker({ allow: [receiver.place], clockOffMs });
      await fixture.turnEnds('t_1');
      await fixture.eventThat(({ tries }) => tries === 1);
      await other.stop(0);
      receiver.answer = () => ({ status: 200 });
      startWorker();
      await fixture.later(1000);
      expect(await fixture.eventThat(() => true)).toMatchObject({ status: 'waiting', tries: 1 });
      await fixture.later(10_000);
      await fixture.eventThat(({ status }) => status === 'sent');
    },
  );

  it('is tried again in time, although Redis was emptied and the clock of the worker that tried is an hour ahead', async () => {
    receiver.answer = () => ({ status: 500 });
    await endpoint();
    const other = fixture.worker({ allow: [receiver.place], clockOffMs: HOUR_MS });
    await fixture.turnEnds('t_1');
    await fixture.eventThat(({ tries }) => tries === 1);
    await other.stop(0);
    await fixture.redis.flush();
    await fixture.later(0);
    receiver.answer = () => ({ status: 200 });
    startWorker();
    await fixture.later(10_000);
    expect(await fixture.eventThat(({ status }) => status === 'sent')).toMatchObject({ tries: 2 });
  });

  it('waits as long as the endpoint asks for', async () => {
    receiver.answer = () => ({ status: 503, headers: { 'retry-after': '7200' } });
    await endpoint();
    startWorker();
    await fixture.turnEnds('t_1');
    const event = await fixture.eventThat(({ tries }) => tries === 1);
    expect(Date.parse(event.nextTryAt ?? '') - Date.parse(event.log[0]?.at ?? '')).toBeGreaterThanOrEqual(2 * HOUR_MS);
  });

  it('that is answered with 410 disables its endpoint, until its owner enables it again', async () => {
    receiver.answer = () => ({ status: 410 });
    const { id } = await endpoint();
    startWorker();
    await fixture.turnEnds('t_1');
    const dead = await fixture.eventThat(({ status }) => status === 'dead');
    const { events } = await fixture.scope();
    expect(await events.endpoints.get(id)).toMatchObject({ state: 'disabled', reason: 'It answered 410 Gone.' });
    await fixture.turnEnds('t_2');
    expect(await fixture.events()).toHaveLength(1);
    await expect(events.redrive(dead.id)).rejects.toThrow('It answered 410 Gone.');
    await events.endpoints.update(id, { enabled: true });
    receiver.answer = () => ({ status: 200 });
    await fixture.outgoing.wake(await fixture.scope(), (await events.redriveAll(id, 0)).events);
    await fixture.eventThat(({ status }) => status === 'sent');
    expect(await events.endpoints.get(id)).toMatchObject({ state: 'enabled', reason: null, failingSince: null });
  });

  it('is not sent to a private address, and follows no redirect', async () => {
    const inside = await fixture.receiver();
    receiver.answer = () => ({ status: 307, headers: { location: inside.url() } });
    await endpoint({ url: inside.url() });
    await endpoint();
    startWorker();
    await fixture.turnEnds('t_1');
    // On a slow machine one of them is tried again before the other is tried first.
    await eventually(async () => (await fixture.events()).every(({ tries }) => tries > 0));
    const errors = (await fixture.events()).map(({ log }) => log[0]?.error ?? '').toSorted((a, b) => a.localeCompare(b));
    expect(errors).toEqual([expect.stringContaining('has no public address'), expect.stringContaining(' redirects ')]);
    expect(inside.received).toEqual([]);
  });

  it('of an endpoint that was removed or disabled is a dead letter at its next try', async () => {
    const { id } = await endpoint();
    await fixture.turnEnds('t_1');
    await (await fixture.scope()).events.endpoints.remove(id);
    startWorker();
    expect(await fixture.eventThat(({ status }) => status === 'dead')).toMatchObject({ reason: 'Its endpoint was removed.', tries: 0 });
    expect(receiver.received).toEqual([]);
  });
});

describe('endpoints', () => {
  it('do not hold each other up, and get a few requests at once at most', async () => {
    const slow = await fixture.receiver();
    slow.answer = () => 'hang';
    await endpoint({ url: slow.url() });
    const { id } = await endpoint();
    fixture.worker({ allow: [receiver.place, slow.place] });
    for (let turn = 0; turn < 30; turn += 1) await fixture.turnEnds(`t_${String(turn)}`);
    await receiver.until(30);
    await eventually(
      async () => (await fixture.events()).filter(({ endpointId, status }) => endpointId === id && status === 'sent').length === 30,
    );
    expect(slow.mostOpen).toBeLessThanOrEqual(limits.eventsAtOnce);
    expect(receiver.mostOpen).toBeLessThanOrEqual(limits.eventsAtOnce);
    expect(slow.received.length).toBeGreaterThan(0);
  });
});

it('an endpoint that fails goes behind the others after a few tries, however much waits for it', async () => {
  const failing = await fixture.receiver();
  failing.answer = () => ({ status: 500 });
  await endpoint({ url: failing.url(), types: [] });
  await endpoint({ types: [] });
  const scope = await fixture.scope();
  const waiting = Array.from({ length: 30 }, async (_, turn) => scope.events.emitTo(failing.url(), turnEnded(`t_${String(turn)}`)));
  await fixture.outgoing.wake(scope, await Promise.all(waiting));
  await fixture.outgoing.wake(scope, [await scope.events.emitTo(receiver.url(), turnEnded('t_good'))]);
  let before = 0;
  receiver.answer = () => {
    before = failing.received.length;
    return { status: 204 };
  };
  fixture.worker({ allow: [receiver.place, failing.place], concurrency: 1 });
  await failing.until(30);
  expect(before).toBe(limits.eventsAtOnce);
});

describe('what waits', () => {
  it('is sent although its wake-up was lost', async () => {
    await endpoint();
    await (await fixture.scope()).events.emit(turnEnded('t_1'));
    startWorker();
    await fixture.reconciler.reconcile();
    await fixture.eventThat(({ status }) => status === 'sent');
    expect(receiver.received).toHaveLength(1);
  });

  it('is found again, with the time of its next try, when Redis comes back empty', async () => {
    receiver.answer = () => ({ status: 500 });
    await endpoint();
    await fixture.holdTime();
    startWorker();
    await fixture.turnEnds('t_1');
    await fixture.eventThat(({ tries }) => tries === 1);
    await fixture.redis.flush();
    await fixture.holdTime();
    await fixture.reconciler.reconcile();
    receiver.answer = () => ({ status: 200 });
    expect(await fixture.eventThat(() => true)).toMatchObject({ status: 'waiting', tries: 1 });
    await fixture.later(HOUR_MS);
    await fixture.eventThat(({ status }) => status === 'sent');
    expect(receiver.received).toHaveLength(2);
  });
});
