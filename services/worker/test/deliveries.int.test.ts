import { HOUR_MS, toSimulatedAddress } from '@concierge/contract';
import { describe, expect, it } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { armFailpoints } from '@concierge/runtime';
import { botError, eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { TestDeliveries, telegram } from './test-deliveries.ts';

let fixture: TestDeliveries;

setUpEach(async (stack) => {
  fixture = stack.use(await TestDeliveries.open());
});

const texts = (): unknown[] => fixture.telegram.sent.map(({ text }) => text);

describe('a message to a channel', () => {
  it('is sent in its channel’s markup, and settled', async () => {
    const id = await fixture.say('**Hello** Ann');
    expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
    expect(fixture.telegram.sent).toMatchObject([{ chat_id: 4242, text: '<b>Hello</b> Ann', parse_mode: 'HTML' }]);
    expect((await fixture.delivery(id)).fullView()).toMatchObject({ state: 'sent', problem: null, parts: [{ state: 'sent', tries: 1 }] });
    expect(await fixture.scope.outbox.waiting()).toEqual([]);
    expect(await fixture.scope.outbox.lanes()).toEqual([]);
    expect((await fixture.scope.channels.find('channel_c'))?.lastOutboundAt).toBe(new Date(fixture.nowMs).toISOString());
    expect(fixture.reported).toEqual(['sent']);
  });

  it('goes out part by part, in order', async () => {
    const id = await fixture.say(Array.from({ length: 900 }, (_, line) => `line ${String(line)}`).join('\n\n'));
    await fixture.deliver(id);
    const numbers = texts().flatMap((text) =>
      [...String(text).matchAll(/line (?<number>\d+)/gu)].map(({ groups }) => Number(groups?.['number'])),
    );
    expect(texts().length).toBeGreaterThan(1);
    expect(numbers).toEqual(Array.from({ length: 900 }, (_, line) => line));
  });

  it('is begun again when the worker that claimed it died before its request left', async () => {
    armFailpoints('delivery.after-claim:throw');
    const id = await fixture.say('Hello');
    await expect(fixture.deliver(id)).rejects.toThrow('fail point');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).fullView()).toMatchObject({ state: 'sent', parts: [{ state: 'sent', tries: 2 }] });
    expect(texts()).toEqual(['Hello']);
    expect(fixture.reported).toEqual(['sent']);
  });

  it('is not begun again when its request may have left', async () => {
    for (const point of ['delivery.after-leave', 'delivery.after-send']) {
      armFailpoints(`${point}:throw`);
      const id = await fixture.say(`at ${point}`);
      await expect(fixture.deliver(id)).rejects.toThrow('fail point');
      expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 25_000 });
      fixture.nowMs += 25_000;
      await fixture.deliver(id);
      expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'unknown', problem: { code: 'interrupted' } });
    }
    expect(texts()).toEqual(['at delivery.after-send']);
    expect(fixture.reported).toEqual(['unknown', 'unknown']);
  });

  it('is not begun again after the machine itself has stopped: what was written last may be lost then', async () => {
    armFailpoints('delivery.after-claim:throw');
    const id = await fixture.say('Hello');
    await expect(fixture.deliver(id)).rejects.toThrow('fail point');
    await writeFile(join(fixture.scope.root, 'outbox', id.slice(2, 14), `${id}.0.1`), 'another-boot');
    await fixture.deliver(id);
    fixture.nowMs += 25_000;
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('unknown');
    expect(texts()).toEqual([]);
  });

  it('is sent once when the worker that claimed it was frozen, and wakes up after another has taken over', async () => {
    const id = await fixture.say('Hello');
    await fixture.deliver(await fixture.say('before', { to: '1' }));
    const { outbox } = fixture.scope;
    const frozen = await outbox.record(id, [
      { kind: 'parts', at: new Date(fixture.nowMs).toISOString(), parts: [{ text: 'Hello', plain: 'Hello' }] },
    ]);
    if (frozen === undefined) throw new Error('no such message');
    expect(await outbox.claim(frozen, { part: 0, try: 1 })).toBe(true);
    await fixture.deliverer().deliverNext(fixture.scope, id.slice(2, 14), new AbortController().signal);
    expect(await outbox.leave(frozen, { part: 0, try: 1 })).toBe(false);
    await fixture.deliver(id);
    expect(await outbox.leave(frozen, { part: 0, try: 1 })).toBe(false);
    expect(texts()).toEqual(['before', 'Hello']);
  });

  it('whose answer never came is unknown, is not sent again, and does not keep the parts after it', async () => {
    fixture.telegram.failSends('cut');
    const id = await fixture.say(`${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`);
    expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
    expect(texts()).toEqual(['a'.repeat(4000), 'b'.repeat(4000)]);
    expect((await fixture.delivery(id)).fullView()).toMatchObject({ state: 'unknown', parts: [{ state: 'unknown' }, { state: 'sent' }] });
    expect(fixture.reported).toEqual(['unknown']);
  });

  it('that is being sent when the worker must stop is unknown, too', async () => {
    fixture.telegram.failSends('hang');
    const stop = new AbortController();
    const id = await fixture.say('Hello');
    const delivered = fixture.deliver(id, { signal: stop.signal });
    await eventually(() => fixture.telegram.sent.length === 1);
    stop.abort(new Error('the worker stops'));
    await delivered;
    expect((await fixture.delivery(id)).state).toBe('unknown');
  });

  it('that a frozen worker reports late has arrived', async () => {
    armFailpoints('delivery.after-leave:throw');
    const id = await fixture.say('Hello');
    await expect(fixture.deliver(id)).rejects.toThrow('fail point');
    fixture.nowMs += 25_000;
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('unknown');
    const at = new Date(fixture.nowMs).toISOString();
    await fixture.scope.outbox.record(id, [{ kind: 'result', at, part: 0, try: 1, outcome: 'sent', providerMessageId: '1' }]);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });
});

describe('what a channel answers', () => {
  it('to wait holds the message, and the binding for a while', async () => {
    fixture.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
    const id = await fixture.say('Hello');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 20_000 });
    expect(fixture.held).toEqual([{ channel: 'channel_c', ms: 20_000 }]);
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 20_000 });
    fixture.nowMs += 20_000;
    expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
    expect(texts()).toEqual(['Hello', 'Hello']);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it.each([HOUR_MS, -HOUR_MS])(
    'to wait is kept to by another worker, although the clock of the one that tried was %i ms off',
    async (aheadMs) => {
      fixture.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
      const id = await fixture.say('Hello');
      await fixture.deliver(id, { by: fixture.deliverer({ aheadMs }) });
      expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 20_000 });
      fixture.nowMs += 20_000;
      expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
      expect((await fixture.delivery(id)).state).toBe('sent');
    },
  );

  it('to wait in a group delays no other contact', async () => {
    fixture.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
    await fixture.deliver(await fixture.say('Hello', { to: '-100123' }));
    expect(fixture.held).toEqual([]);
  });

  it('to wait for hours parks the message; to wait longer than it is timely ends it', async () => {
    fixture.telegram.failSends(
      botError(429, 'Too Many Requests', { retry_after: 7200 }),
      botError(429, 'Too Many Requests', { retry_after: 90_000 }),
    );
    const id = await fixture.say('Hello');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 7_200_000 });
    fixture.nowMs += 7_200_000;
    expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'expired', problem: { code: '429' } });
  });

  it('that is the channel’s own error is tried again later and later, and then given up', async () => {
    fixture.telegram.failSends(...Array.from({ length: 20 }, () => botError(500, 'Internal Server Error')));
    const id = await fixture.say('Hello');
    const waits: number[] = [];
    for (let count = 0; count < 20; count += 1) {
      const step = await fixture.deliver(id);
      if (step.kind !== 'parked') break;
      waits.push(step.untilMs - fixture.nowMs);
      fixture.nowMs = step.untilMs;
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000]);
    expect((await fixture.delivery(id)).fullView()).toMatchObject({ state: 'failed', problem: { code: '500' }, parts: [{ tries: 10 }] });
    expect((await fixture.scope.channels.find('channel_c'))?.lastError).toMatchObject({ code: '500' });
  });

  it('that it cannot read the markup gets it plain at once', async () => {
    fixture.telegram.failSends(botError(400, "Bad Request: can't parse entities: Unsupported start tag"));
    const id = await fixture.say('**Hello**');
    await fixture.deliver(id);
    expect(fixture.telegram.sent).toMatchObject([{ text: '<b>Hello</b>', parse_mode: 'HTML' }, { text: 'Hello' }]);
    expect(fixture.telegram.sent[1]).not.toHaveProperty('parse_mode');
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it('that it cannot read even that ends it', async () => {
    const refusal = botError(400, "Bad Request: can't parse entities: Unsupported start tag");
    fixture.telegram.failSends(refusal, refusal);
    const id = await fixture.say('**Hello**');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'failed', problem: { code: '400' } });
  });

  it('that the message which is answered is gone gets it without the reference', async () => {
    fixture.telegram.failSends(botError(400, 'Bad Request: message to be replied not found'));
    const id = await fixture.say('Hello', { replyTo: '4242/77' });
    await fixture.deliver(id);
    expect(fixture.telegram.sent).toMatchObject([{ reply_parameters: { message_id: 77 } }, { text: 'Hello' }]);
    expect(fixture.telegram.sent[1]).not.toHaveProperty('reply_parameters');
  });

  it('that a group has moved gets it there, and the group is known by both names', async () => {
    fixture.telegram.migrate(-4001, -1_002_003);
    const id = await fixture.say('Hello', { to: '-4001' });
    await fixture.deliver(id);
    expect(fixture.telegram.sent.map((sent) => sent['chat_id'])).toEqual([-4001, -1_002_003]);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'sent', to: '-1002003' });
    expect(await fixture.scope.contacts.findCanonicalSender('channel_c', '-1002003')).toBe('-4001');
  });

  it('that this person has blocked the bot ends this message and no other', async () => {
    fixture.telegram.block(4242);
    const [first, other] = [await fixture.say('Hello'), await fixture.say('Hello', { to: '7777' })];
    await fixture.deliver(first);
    await fixture.deliver(other);
    expect((await fixture.delivery(first)).view()).toMatchObject({ state: 'failed', problem: { code: '403' } });
    expect((await fixture.delivery(other)).state).toBe('sent');
    expect(fixture.reported).toEqual(['failed', 'sent']);
  });

  it('that the credentials are not valid stops what goes out and nothing else; what waits is sent once it is connected anew', async () => {
    fixture.telegram.failSends(botError(401, 'Unauthorized'));
    const id = await fixture.say('Hello');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 30_000 });
    expect(await fixture.scope.channels.find('channel_c')).toMatchObject({
      state: 'receive_only',
      reason: 'telegram refuses what is sent with its credentials (401): Unauthorized',
      lastError: { code: '401' },
    });
    expect(await fixture.scope.channels.open('channel_c')).toMatchObject(telegram);
    expect((await fixture.delivery(id)).state).toBe('waiting');
    expect(await fixture.figures()).toContain('concierge_channel_failures_total{channel="channel_c",class="binding_failed"} 1');
    await fixture.connect('channel_c', telegram);
    expect((await fixture.scope.channels.find('channel_c'))?.state).toBe('enabled');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it('that nothing may be sent is asked again now and then, by one message for all, until it is taken', async () => {
    fixture.telegram.failSends(botError(401, 'Unauthorized'), botError(401, 'Unauthorized'));
    const ids = [await fixture.say('one'), await fixture.say('two', { to: '5' }), await fixture.say('three', { to: '6' })];
    const deliverAll = async (): Promise<void> => {
      for (const id of ids) await fixture.deliver(id);
    };
    await deliverAll();
    await deliverAll();
    expect(texts()).toEqual(['one']);
    fixture.nowMs += 15 * 60_000;
    await deliverAll();
    expect(texts()).toEqual(['one', 'one']);
    fixture.nowMs += 15 * 60_000;
    const woken: string[] = [];
    fixture.wakeOutbox = async ({ lane }) => Promise.resolve(void woken.push(lane));
    await deliverAll();
    expect(texts()).toEqual(['one', 'one', 'one', 'two', 'three']);
    expect(woken).toContain((ids[1] ?? '').slice(2, 14));
    expect((await fixture.scope.channels.find('channel_c'))?.state).toBe('enabled');
  });

  it('that nothing may be sent holds back nothing to a simulated contact, which is no try of the binding', async () => {
    fixture.telegram.failSends(botError(401, 'Unauthorized'));
    const id = await fixture.say('Hello');
    await fixture.deliver(id);
    fixture.nowMs += 15 * 60_000;
    const simulated = await fixture.say('Hello', { to: toSimulatedAddress('ann') });
    await fixture.deliver(simulated);
    expect((await fixture.delivery(simulated)).state).toBe('sent');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it('that nothing may be sent, for a day, is told to the owner instead of sending late', async () => {
    fixture.telegram.failSends(...Array.from({ length: 200 }, () => botError(401, 'Unauthorized')));
    const id = await fixture.say('Hello');
    for (let hours = 0; hours < 25; hours += 0.25) {
      await fixture.deliver(id);
      fixture.nowMs += 15 * 60_000;
    }
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'expired', problem: { code: '401' } });
    expect(fixture.reported).toEqual(['expired']);
  });

  it('that nothing may be sent, for half a day, does not count against the message: a failure after that is tried again', async () => {
    const refusals = Array.from({ length: 40 }, () => botError(401, 'Unauthorized'));
    fixture.telegram.failSends(...refusals, botError(500, 'Internal Server Error'));
    const id = await fixture.say('Hello');
    for (let count = 0; count <= 41; count += 1) {
      await fixture.deliver(id);
      fixture.nowMs += 15 * 60_000;
    }
    expect((await fixture.delivery(id)).fullView()).toMatchObject({ state: 'sent', parts: [{ state: 'sent', tries: 42 }] });
  });

  it('that comes after the owner has connected the channel anew does not disable the new binding', async () => {
    fixture.telegram.failSends('hang');
    const stop = new AbortController();
    const id = await fixture.say('Hello');
    const delivered = fixture.deliver(id, { signal: stop.signal });
    await eventually(() => fixture.telegram.sent.length === 1);
    await fixture.connect('channel_c', telegram);
    stop.abort(new Error('the worker stops'));
    await delivered;
    expect((await fixture.scope.channels.find('channel_c'))?.state).toBe('enabled');
  });
});

describe('a message that must not be sent', () => {
  it('any more, because its time is over, is not', async () => {
    await fixture.scope.channels.setDisabled('channel_c', 'for a test');
    const id = await fixture.say('Good morning');
    expect(await fixture.deliver(id)).toEqual({ kind: 'parked', untilMs: fixture.nowMs + 30_000 });
    fixture.nowMs += 24 * 3_600_000 + 60_000;
    await fixture.scope.channels.setDisabled('channel_c', null);
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('expired');
    expect(texts()).toEqual([]);
    expect(fixture.reported).toEqual(['expired']);
  });

  it.each([HOUR_MS, -HOUR_MS])(
    'any more after a day is one that has waited for a day, also where a worker’s clock is %i ms off',
    async (aheadMs) => {
      await fixture.scope.channels.setDisabled('channel_c', 'for a test');
      const id = await fixture.say('Good morning');
      const by = fixture.deliverer({ aheadMs });
      await fixture.deliver(id, { by });
      fixture.nowMs += 24 * HOUR_MS - 60_000;
      expect(await fixture.deliver(id, { by })).toMatchObject({ kind: 'parked' });
      fixture.nowMs += 120_000;
      await fixture.deliver(id, { by });
      expect((await fixture.delivery(id)).state).toBe('expired');
    },
  );

  it('any more, because everything was down for days, is not', async () => {
    const id = await fixture.say('Good morning');
    fixture.nowMs += 72 * HOUR_MS;
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('expired');
    expect(texts()).toEqual([]);
  });

  it('because staff has taken over right before the next part is withheld, and not sent later', async () => {
    const id = await fixture.say(`${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`);
    const { sessionId } = (await fixture.delivery(id)).message;
    const by = fixture.deliverer();
    expect(await by.deliverNext(fixture.scope, id.slice(2, 14), new AbortController().signal)).toEqual({ kind: 'again' });
    await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'operator' } });
    await fixture.deliver(id, { by });
    expect(texts()).toEqual(['a'.repeat(4000)]);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'handoff' } });
    await fixture.scope.handoffs.resume(sessionId, { kind: 'operator' });
    await fixture.deliver(id);
    expect(texts()).toHaveLength(1);
  });

  it('since staff has had the conversation in between is not sent late, unless it is redriven', async () => {
    fixture.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
    const id = await fixture.say('Monday, I think.');
    const { sessionId } = (await fixture.delivery(id)).message;
    expect(await fixture.deliver(id)).toMatchObject({ kind: 'parked' });
    await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'operator' } });
    await fixture.scope.handoffs.resume(sessionId, { kind: 'operator' });
    fixture.nowMs += 20_000;
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'handoff' } });
    expect(texts()).toHaveLength(1);
    await fixture.scope.outbox.redrive(id, { kind: 'operator' });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it('by the agent is sent when it is a staff member’s, or announces that one was requested', async () => {
    const { sessionId } = (await fixture.delivery(await fixture.say('of the agent'))).message;
    await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'operator' } });
    await fixture.say('of a person', { kind: 'person' });
    await fixture.deliver(await fixture.say('somebody will come', { kind: 'notice' }));
    expect(texts()).toEqual(['of a person', 'somebody will come']);
  });

  it('that announces staff is not sent once the conversation is given back, unless it is redriven', async () => {
    fixture.telegram.failSends(botError(429, 'Too Many Requests: retry after 20', { retry_after: 20 }));
    const { sessionId } = (await fixture.delivery(await fixture.say('of the agent'))).message;
    const { view } = await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'operator' } });
    const id = await fixture.say('A colleague will answer.', { kind: 'notice', turnId: view.id, callId: 'notice' });
    expect(await fixture.deliver(id)).toMatchObject({ kind: 'parked' });
    await fixture.scope.handoffs.resume(sessionId, { kind: 'operator' });
    fixture.nowMs += 20_000;
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).view()).toMatchObject({ state: 'withheld', problem: { code: 'handoff' } });
    expect(texts()).toEqual(['A colleague will answer.']);
    await fixture.scope.outbox.redrive(id, { kind: 'operator' });
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });

  it('before the agent requested staff itself is sent, and its answer is not', async () => {
    const turnId = 't_asking';
    const reply = await fixture.say('A colleague will answer.', { kind: 'reply', callId: 'c1', turnId });
    const { sessionId } = (await fixture.delivery(reply)).message;
    await fixture.scope.handoffs.request(sessionId, { reason: 'asked', by: { kind: 'agent', agent: 'cs', turnId } });
    await fixture.deliver(await fixture.say('Anything else?', { turnId }));
    expect(texts()).toEqual(['A colleague will answer.']);
  });

  it('because nothing of it can be seen ends by itself', async () => {
    const id = await fixture.say('<!-- nothing -->\n\n&#8203;');
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toMatch(/sent|failed/u);
  });

  it('while its tenant is suspended waits', async () => {
    await fixture.scope.updateSettings({ suspended: true });
    const id = await fixture.say('Hello');
    expect(await fixture.deliver(id)).toMatchObject({ kind: 'parked' });
    await fixture.scope.updateSettings({ suspended: null });
    expect(await fixture.deliver(id)).toEqual({ kind: 'empty' });
    expect(texts()).toEqual(['Hello']);
  });
});
