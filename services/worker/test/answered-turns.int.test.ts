import { hash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { Delivery, TenantScope } from '@concierge/tenant';
import { eventually, FakeTelegram, hang, say, status, type ScriptedModel, type System } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Turns } from '@concierge/turn';
import { telegram } from './test-deliveries.ts';
import { contactWrites, TestSystem } from './test-system.ts';

let model: ScriptedModel;
let fake: FakeTelegram;
let system: System;
let scope: TenantScope;
let turns: Turns;

setUpOnce(async (stack) => {
  fake = stack.use(await new FakeTelegram(telegram).start());
  // Messages are accepted here, as a gateway accepts them.
  const whole = stack.use(await TestSystem.start({ gateways: 0, env: { TELEGRAM_API_URL: fake.url } }));
  ({ system, model } = whole);
  ({ scope } = await whole.tenant());
  await scope.channels.connect('channel_c', telegram);
  turns = await whole.openTurns();
});

const sentTo = (chat: string): unknown[] => fake.sent.filter((sent) => String(sent['chat_id']) === chat);

/** What a killed worker may have sent waits for 25 s of the time in which a worker runs, and one is to start first. */
const DELIVERED_WITHIN_MS = 180_000;

async function findDelivered(turnId: string): Promise<Delivery> {
  return eventually(
    async () => {
      const [delivery] = await scope.outbox.ofTurn(turnId);
      return delivery !== undefined && delivery.state !== 'waiting' && (await scope.outbox.isEmpty(delivery.message.id.slice(2, 14)))
        ? delivery
        : undefined;
    },
    { timeoutMs: DELIVERED_WITHIN_MS },
  );
}

describe('a message from a channel', () => {
  it('is answered there, and its turn records it', async () => {
    model.when('are you open', [say('Until **18:00**.')]);
    const { turnId } = await turns.accept(scope, contactWrites('4242', 'are you open'));
    await findDelivered(turnId);
    expect(sentTo('4242')).toMatchObject([{ text: 'Until <b>18:00</b>.' }]);
    // Its answer may be delivered before its own end is announced.
    await eventually(async () => (await turns.find(scope, turnId))?.endedAt != null);
    expect(await turns.find(scope, turnId)).toMatchObject({ status: 'done', deliveries: [{ kind: 'answer', state: 'sent', to: '4242' }] });
  });

  it('of a group is answered there, in its topic, and names what is answered', async () => {
    model.when('who is there', [say('I am.')]);
    const channelMessage = { address: { to: '-100777', thread: '9' }, isGroup: true, messageRef: '-100777/31', media: [], replyTo: null };
    const { turnId } = await turns.accept(scope, contactWrites('-100777:4242', 'who is there', { channelMessage }));
    await findDelivered(turnId);
    expect(sentTo('-100777')).toMatchObject([{ text: 'I am.', message_thread_id: 9, reply_parameters: { message_id: 31 } }]);
  });

  it('that an API has in the name of a channel is answered to the API alone', async () => {
    model.when('from an api', [say('Hello, API.')]);
    const { channelMessage: _, ...input } = contactWrites('5555', 'from an api', { origin: 'api' });
    const { turnId } = await turns.accept(scope, input);
    await eventually(async () => (await turns.find(scope, turnId))?.status === 'done');
    expect(await scope.outbox.ofTurn(turnId)).toEqual([]);
  });

  it('whose turn fails is not left without a word: it gets a sentence, which no stream has', async () => {
    model.when('the model is down', [status(400)]);
    const { turnId } = await turns.accept(scope, contactWrites('4301', 'the model is down'));
    await findDelivered(turnId);
    expect(sentTo('4301')).toMatchObject([{ text: expect.stringContaining('Please try again') }]);
    const { sessionId } = (await scope.outbox.ofTurn(turnId))[0]?.message ?? {};
    const session = await scope.sessions.load(sessionId ?? '');
    expect(session?.turns).toMatchObject([{ status: 'failed' }]);
    expect(JSON.stringify(session?.messages)).not.toContain('Please try again');
  });

  it('whose turn fails gets the tenant’s own sentence', async () => {
    await scope.updateSettings({ onFailure: { notice: 'Da ging etwas schief.' } });
    model.when('it is down again', [status(400)]);
    const { turnId } = await turns.accept(scope, contactWrites('4302', 'it is down again'));
    await findDelivered(turnId);
    expect(sentTo('4302')).toMatchObject([{ text: 'Da ging etwas schief.' }]);
    await scope.updateSettings({ onFailure: null });
  });

  it('whose turn fails is handed over where the tenant wants that', async () => {
    await scope.updateSettings({ onFailure: { action: 'handoff' } });
    model.when('help me please', [status(400)]);
    const { turnId, sessionId } = await turns.accept(scope, contactWrites('4303', 'help me please'));
    await findDelivered(turnId);
    expect(await scope.handoffs.find(sessionId)).toMatchObject({
      state: 'paused',
      reason: expect.stringContaining('could not answer'),
      requestedBy: { kind: 'agent', turnId },
    });
    expect(sentTo('4303')).toMatchObject([{ text: expect.stringContaining('colleague') }]);
  });

  it('whose turn fails gets the notice of the handoff alone, where there is one', async () => {
    await scope.updateSettings({ onFailure: { action: 'handoff' }, handoff: { notice: 'Anna will answer you.' } });
    model.when('another failure', [status(400)]);
    const { turnId } = await turns.accept(scope, contactWrites('4304', 'another failure'));
    await eventually(() => sentTo('4304').length > 0);
    expect(sentTo('4304')).toMatchObject([{ text: 'Anna will answer you.' }]);
    expect(await scope.outbox.ofTurn(turnId)).toEqual([]);
    await scope.updateSettings({ handoff: null });
  });

  it('whose turn fails or is cancelled gets nothing where nothing is wanted', async () => {
    await scope.updateSettings({ onFailure: { action: 'silent' } });
    model.when('one more failure', [status(400)]);
    const { turnId } = await turns.accept(scope, contactWrites('4305', 'one more failure'));
    await eventually(async () => (await turns.find(scope, turnId))?.status === 'failed');
    expect(await scope.outbox.ofTurn(turnId)).toEqual([]);
    await scope.updateSettings({ onFailure: null });
    model.when('never mind', [hang()]);
    const cancelled = await turns.accept(scope, contactWrites('4306', 'never mind'));
    await eventually(async () => (await turns.find(scope, cancelled.turnId))?.status === 'running');
    await turns.cancel(scope, cancelled.turnId);
    await eventually(async () => (await turns.find(scope, cancelled.turnId))?.status === 'cancelled');
    expect(await scope.outbox.ofTurn(cancelled.turnId)).toEqual([]);
  });

  it.each([
    ['outbox.after-file:kill', { sends: 1, state: 'sent' }],
    ['turn.after-save:kill', { sends: 1, state: 'sent' }],
    ['delivery.after-claim:kill', { sends: 1, state: 'sent' }],
    ['delivery.after-leave:kill', { sends: 0, state: 'unknown' }],
    ['delivery.after-send:kill', { sends: 1, state: 'unknown' }],
  ])('is answered at most once, and never claimed to be when it is unknown: %s', async (failpoint, expected) => {
    const sender = String(6_000_000 + Number.parseInt(hash('sha1', failpoint).slice(0, 4), 16));
    model.when(`hello ${failpoint}`, [say('Hello.')], [say('Hello.')]);
    const [worker] = system.workers;
    await worker?.terminate();
    worker?.start({ FAILPOINT: failpoint });
    const { turnId } = await turns.accept(scope, contactWrites(sender, `hello ${failpoint}`));
    await eventually(() => worker?.endedBy === 'SIGKILL');
    worker?.start();
    const { state } = await findDelivered(turnId);
    expect({ state, sends: sentTo(sender).length }).toEqual(expected);
  });
});
