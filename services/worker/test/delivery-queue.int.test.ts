import { describe, expect, it } from '@jest/globals';
import { botError, eventually, gate } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { deriveSessionId } from '@concierge/tenant';
import { toDueKey, keyOf, wakeOutboxBy, type DueKey } from '@concierge/turn';
import { TestDeliveries, telegram } from './test-deliveries.ts';

let fixture: TestDeliveries;

setUpEach(async (stack) => {
  fixture = stack.use(await TestDeliveries.open());
});

function keyOfMessage(id: string, tenantId = 'acme'): DueKey {
  return toDueKey({ tenantId, lane: id.slice(2, 14) });
}

const texts = (): unknown[] => fixture.telegram.sent.map(({ text }) => text);

it('several parts and messages in one conversation are in order, however many workers send', async () => {
  const { queue, worker } = fixture.queue();
  for (let count = 0; count < 3; count += 1) worker(4);
  const ids: string[] = [];
  for (let count = 0; count < 6; count += 1) ids.push(await fixture.say(`message ${String(count)}\n\n${'x'.repeat(4090)}`));
  await Promise.all(ids.map(async (id) => queue.add([{ ...keyOfMessage(id), delayMs: 0 }])));
  await eventually(async () => (await fixture.scope.outbox.waiting()).length === 0);
  const order = texts().map((text) => (String(text).startsWith('message') ? Number(String(text).slice(8, 9)) : 'x'));
  expect(order).toEqual([0, 'x', 1, 'x', 2, 'x', 3, 'x', 4, 'x', 5, 'x']);
});

it('what waited for a channel to be connected goes out when it is, and not some time later', async () => {
  const { worker, queue } = fixture.queue();
  fixture.wakeOutbox = wakeOutboxBy(queue);
  await fixture.scope.channels.setDisabled('channel_c', 'for a test');
  const id = await fixture.say('Hello');
  worker();
  const { tenantId, name } = keyOfMessage(id);
  await eventually(
    async () => Number(await fixture.redis().zscore(keyOf.dueWork('deliveries'), `${tenantId}/${name}`)) > Date.now() + 20_000,
  );
  await fixture.connect('channel_c', telegram);
  // There is no reconciler, and the test's clock stands still.
  await eventually(async () => (await fixture.delivery(id)).state === 'sent');
  expect(texts()).toEqual(['Hello']);
});

it('a message does not overtake one that a worker still sends after Redis was emptied', async () => {
  const { reconciler, worker } = fixture.queue();
  fixture.telegram.failSends('hang');
  const first = await fixture.say('first');
  const second = await fixture.say('second');
  worker();
  await reconciler.reconcile();
  await eventually(() => fixture.telegram.sent.length === 1);
  fixture.forgetTimes();
  await fixture.redis().flushall();
  worker();
  await reconciler.reconcile();
  const addedMs = Date.now();
  const { tenantId, name } = keyOfMessage(first);
  const due = async (): Promise<number> => Number(await fixture.redis().zscore(keyOf.dueWork('deliveries'), `${tenantId}/${name}`));
  // Not by the time of the look, which may be a late one: the first worker waits for its answer for twenty seconds.
  await eventually(async () => (await due()) > addedMs + 15_000);
  expect(texts()).toEqual(['first']);
  expect((await fixture.delivery(first)).state).toBe('waiting');
  fixture.nowMs += 25_000;
  await fixture.deliver(first);
  expect((await fixture.delivery(first)).state).toBe('unknown');
  expect((await fixture.delivery(second)).state).toBe('sent');
  expect(texts()).toEqual(['first', 'second']);
});

describe('what was lost', () => {
  it('with Redis gets its wake-up again', async () => {
    const { reconciler, worker } = fixture.queue();
    const id = await fixture.say('Hello');
    await fixture.redis().flushall();
    worker();
    await reconciler.reconcile();
    await eventually(async () => (await fixture.delivery(id)).state === 'sent');
    expect(texts()).toEqual(['Hello']);
  });

  it('as a wake-up is enqueued again, once it is late', async () => {
    const { reconciler, worker, queue } = fixture.queue();
    const id = await fixture.say('Hello');
    const key = keyOfMessage(id);
    await queue.add([{ ...key, delayMs: 0 }]);
    await queue.queues[0]?.obliterate({ force: true });
    const redis = fixture.redis();
    // As if it had been enqueued a minute ago.
    await redis.zincrby(keyOf.dueWork('deliveries'), -60_000, `${key.tenantId}/${key.name}`);
    expect(await queue.unknown([key])).toEqual([]);
    worker();
    await reconciler.reconcile();
    await eventually(async () => (await fixture.delivery(id)).state === 'sent');
  });

  it('with its tenant gets no wake-up any more', async () => {
    const { worker, queue } = fixture.queue();
    const key = keyOfMessage(await fixture.say('Hello'));
    await queue.add([{ ...key, delayMs: 0 }]);
    await fixture.tenants.delete('acme');
    worker();
    await eventually(async () => (await queue.unknown([key])).length === 1);
    expect(texts()).toEqual([]);
  });

  it('with the worker that had the conversation is sent by another, once its lease is over', async () => {
    const { worker, queue } = fixture.queue();
    const id = await fixture.say('Hello');
    const key = keyOfMessage(id);
    await queue.add([{ ...key, delayMs: 0 }]);
    const claim = await queue.claimOne(key);
    expect(await queue.claimOne(key)).toBeUndefined();
    const due = keyOf.dueWork('deliveries');
    await fixture.redis().del(`${due}:claimed`, `${due}:numbers`);
    expect(claim !== undefined && (await queue.keep(claim))).toBe(false);
    worker();
    await queue.add([{ ...key, delayMs: 0 }]);
    await eventually(async () => (await fixture.delivery(id)).state === 'sent');
  });

  it('to a channel is sent again on request, and only the part that is missing', async () => {
    fixture.telegram.failSends({ body: { ok: true, result: { message_id: 1 } } }, botError(403, 'Forbidden: bot was blocked by the user'));
    const id = await fixture.say(`${'a'.repeat(4000)}\n\n${'b'.repeat(4000)}`);
    await fixture.deliver(id);
    expect((await fixture.delivery(id)).state).toBe('failed');
    await fixture.scope.outbox.redrive(id, { kind: 'operator' });
    await fixture.deliver(id);
    expect(texts()).toEqual(['a'.repeat(4000), 'b'.repeat(4000), 'b'.repeat(4000)]);
    expect((await fixture.delivery(id)).state).toBe('sent');
  });
});

it('a tenant with one message is not behind another with many', async () => {
  const { queue, worker } = fixture.queue();
  for (let contact = 0; contact < 30; contact += 1) {
    const id = await fixture.say('loud', { to: String(5000 + contact) });
    await queue.add([{ ...keyOfMessage(id), delayMs: 0 }]);
  }
  const quiet = await fixture.tenants.create('quiet');
  await quiet.channels.connect('channel_c', telegram);
  const to = '4242';
  const { message } = await quiet.outbox.accept({
    kind: 'answer',
    channel: 'channel_c',
    to,
    sessionId: deriveSessionId('cs', 'channel_c', to),
    text: 'quiet',
    agent: 'cs',
    turnId: 't_quiet',
    callId: 'answer',
  });
  await queue.add([{ ...keyOfMessage(message.id, 'quiet'), delayMs: 0 }]);
  worker(1);
  await eventually(() => texts().includes('quiet'));
  // Only the very first one of the others was as urgent.
  expect(texts().indexOf('quiet')).toBeLessThanOrEqual(1);
});

it('a worker that stops finishes the part that it is sending', async () => {
  const answered = gate();
  const { worker, queue } = fixture.queue();
  const sending = gate();
  fixture.beforeSend = async () => {
    sending.open();
    await answered.opened;
  };
  const id = await fixture.say('Hello');
  const stopping = worker(1);
  await queue.add([{ ...keyOfMessage(id), delayMs: 0 }]);
  await sending.opened;
  const stopped = stopping.stop(60_000);
  answered.open();
  await stopped;
  expect((await fixture.delivery(id)).state).toBe('sent');
});

it('the pace of a conversation and of a binding is kept by every sender', async () => {
  const { pace } = fixture.queue();
  // So long that a machine that stands still in between does not come near them.
  const rules = { conversationIntervalMs: 600_000, conversationBurst: 2, bindingPerSecond: 3 };
  const ann = { tenantId: 'acme', lane: 'a'.repeat(12) };
  const bob = { tenantId: 'acme', lane: 'b'.repeat(12) };
  expect(await pace.pace(ann, 'channel_c', rules)).toBe(0);
  expect(await pace.pace(ann, 'channel_c', rules)).toBe(0);
  expect(await pace.pace(ann, 'channel_c', rules)).toBeGreaterThan(500_000);
  await pace.hold({ tenantId: 'acme', channel: 'channel_c' }, 300_000);
  expect(await pace.pace(bob, 'channel_c', rules)).toBeGreaterThan(200_000);
  expect(await pace.pace(bob, 'channel_d', { ...rules, bindingPerSecond: 1 })).toBe(0);
});
