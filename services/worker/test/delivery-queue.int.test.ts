import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { botError, eventually, gate } from '@concierge/testing';
import { sessionIdOf } from '@concierge/tenant';
import { keyOf } from '@concierge/turn';
import { DeliveryStage, telegram } from './delivery-stage.ts';

let stage: DeliveryStage;

beforeEach(async () => {
  stage = await DeliveryStage.open();
});
afterEach(async () => stage[Symbol.asyncDispose]());

const texts = (): unknown[] => stage.telegram.sent.map(({ text }) => text);

it('several parts and messages in one conversation are in order, however many workers send', async () => {
  const { bells, worker } = stage.queue();
  for (let count = 0; count < 3; count += 1) worker(4);
  const ids: string[] = [];
  for (let count = 0; count < 6; count += 1) ids.push(await stage.say(`message ${String(count)}\n\n${'x'.repeat(4090)}`));
  const lane = { accountId: 'acme', lane: ids[0]?.slice(2, 14) ?? '' };
  await Promise.all(ids.map(async () => bells.ring(lane)));
  await eventually(async () => (await stage.scope.outbox.waiting()).length === 0, { timeoutMs: 30_000 });
  const order = texts().map((text) => (String(text).startsWith('message') ? Number(String(text).slice(8, 9)) : 'x'));
  expect(order).toEqual([0, 'x', 1, 'x', 2, 'x', 3, 'x', 4, 'x', 5, 'x']);
});

it('what waited for an app to be connected goes out when it is, and not some time later', async () => {
  const { worker, bells } = stage.queue();
  stage.outboxBell = async (each) => bells.ring(each);
  await stage.scope.channels.setDisabled('channel_c', 'for a test');
  const id = await stage.say('Hello');
  const lane = { accountId: 'acme', lane: id.slice(2, 14) };
  const sender = worker();
  await sender.answer(lane);
  await stage.connect('channel_c', telegram);
  // Without a sweeper, and by the test's clock, which stands still.
  await eventually(async () => (await stage.delivery(id)).state === 'sent');
  expect(texts()).toEqual(['Hello']);
});

describe('what was lost', () => {
  it('with Redis is rung for again', async () => {
    const { sweeper, worker } = stage.queue();
    const id = await stage.say('Hello');
    await stage.redis().flushall();
    worker();
    await sweeper.sweep();
    await eventually(async () => (await stage.delivery(id)).state === 'sent');
    expect(texts()).toEqual(['Hello']);
  });

  it('as a bell is rung for again, once it is late', async () => {
    const { sweeper, worker, bells, lanes } = stage.queue();
    const id = await stage.say('Hello');
    const lane = { accountId: 'acme', lane: id.slice(2, 14) };
    await bells.ring(lane);
    await bells.queue.obliterate({ force: true });
    const redis = stage.redis();
    // As if it had been rung a minute ago.
    await redis.zincrby(keyOf.deliveriesDue, -60_000, `${lane.accountId}/${lane.lane}`);
    expect(await lanes.unknown([lane])).toEqual([]);
    worker();
    await sweeper.sweep();
    await eventually(async () => (await stage.delivery(id)).state === 'sent');
  });

  it('with its tenant is not rung for any more', async () => {
    const { worker, bells, lanes } = stage.queue();
    const lane = { accountId: 'acme', lane: (await stage.say('Hello')).slice(2, 14) };
    await bells.ring(lane);
    await stage.tenants.delete('acme');
    await worker().answer(lane);
    await eventually(async () => (await lanes.unknown([lane])).length === 1);
    expect(texts()).toEqual([]);
  });

  it('with whoever had the conversation is sent by another, once its lease is over', async () => {
    const { worker, bells, lanes } = stage.queue();
    const id = await stage.say('Hello');
    const lane = { accountId: 'acme', lane: id.slice(2, 14) };
    const lease = await lanes.take(lane);
    expect(await lanes.take(lane)).toBeUndefined();
    await stage.redis().del(keyOf.deliveryLease(`${lane.accountId}/${lane.lane}`));
    expect(lease !== undefined && (await lanes.keep(lease))).toBe(false);
    worker();
    await bells.ring(lane);
    await eventually(async () => (await stage.delivery(id)).state === 'sent');
  });

  it('to an app is sent again when somebody asks for it, and only the part that is missing', async () => {
    stage.telegram.failSends({ body: { ok: true, result: { message_id: 1 } } }, botError(403, 'Forbidden: bot was blocked by the user'));
    const id = await stage.say(`${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`);
    await stage.deliver(id);
    expect((await stage.delivery(id)).state).toBe('failed');
    await stage.scope.outbox.redrive(id, { kind: 'operator' });
    await stage.deliver(id);
    expect(texts()).toEqual(['a'.repeat(4000), 'b'.repeat(4000), 'b'.repeat(4000)]);
    expect((await stage.delivery(id)).state).toBe('sent');
  });
});

it('a tenant with one message is not behind another with many', async () => {
  const { bells, worker } = stage.queue();
  for (let contact = 0; contact < 30; contact += 1) {
    const id = await stage.say('loud', { to: String(5000 + contact) });
    await bells.ring({ accountId: 'acme', lane: id.slice(2, 14) });
  }
  const quiet = await stage.tenants.create('quiet');
  await quiet.channels.connect('channel_c', telegram);
  const to = '4242';
  const { message } = await quiet.outbox.accept({
    kind: 'answer',
    channel: 'channel_c',
    to,
    sessionId: sessionIdOf('cs', 'channel_c', to),
    text: 'quiet',
    agent: 'cs',
    turnId: 't_quiet',
    callId: 'answer',
  });
  await bells.ring({ accountId: 'quiet', lane: message.id.slice(2, 14) });
  worker(1);
  await eventually(() => texts().includes('quiet'));
  // Only the very first one of the others was as urgent.
  expect(texts().indexOf('quiet')).toBeLessThanOrEqual(1);
});

it('a worker that stops finishes the part that it is sending', async () => {
  const answered = gate();
  const { worker, bells } = stage.queue();
  const sending = gate();
  stage.beforeSend = async () => {
    sending.open();
    await answered.opened;
  };
  const id = await stage.say('Hello');
  const stopping = worker(1);
  await bells.ring({ accountId: 'acme', lane: id.slice(2, 14) });
  await sending.opened;
  const stopped = stopping.stop(60_000);
  answered.open();
  await stopped;
  expect((await stage.delivery(id)).state).toBe('sent');
});

it('the pace of a conversation and of a binding is kept by whoever sends', async () => {
  const { lanes } = stage.queue();
  const rules = { conversationIntervalMs: 60_000, conversationBurst: 2, bindingPerSecond: 3 };
  const ann = { accountId: 'acme', lane: 'a'.repeat(12) };
  const bob = { accountId: 'acme', lane: 'b'.repeat(12) };
  expect(await lanes.pace(ann, 'channel_c', rules)).toBe(0);
  expect(await lanes.pace(ann, 'channel_c', rules)).toBe(0);
  expect(await lanes.pace(ann, 'channel_c', rules)).toBeGreaterThan(50_000);
  await lanes.hold({ accountId: 'acme', channel: 'channel_c' }, 30_000);
  expect(await lanes.pace(bob, 'channel_c', rules)).toBeGreaterThan(20_000);
  expect(await lanes.pace(bob, 'channel_d', { ...rules, bindingPerSecond: 1 })).toBe(0);
});
