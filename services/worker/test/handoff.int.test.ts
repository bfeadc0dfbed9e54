import { beforeEach, describe, expect, it } from '@jest/globals';
import { callTools, eventually, hang, say } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestHandoffs } from './test-handoffs.ts';

const bob = '4242';
const owner = '9001';
let fixture: TestHandoffs;

setUpOnce(async (stack) => {
  fixture = await TestHandoffs.start(stack);
});
beforeEach(async () => {
  await fixture.newTenant();
});

const session = (): string => `/api/sessions/${fixture.toSessionId(bob)}`;
const asksForPerson = callTools([{ name: 'handoff', args: { action: 'request', reason: 'Wants a refund.' } }]);

async function takeOver(body: Record<string, unknown> = { notify: false }): Promise<void> {
  expect((await fixture.ask('admin', `${session()}/handoff`, { body })).status).toBe(201);
}

/**
 * What waits to be sent to a recipient, beside what the agent answers: no channel is connected here, so all of it
 * waits.
 */
async function sentTo(to: string): Promise<string[]> {
  const waiting = (await fixture.scope.outbox.waiting()).filter((message) => message.to === to && message.kind !== 'answer');
  return waiting.map(({ kind, text }) => `${kind}: ${text}`);
}

describe('a staff member who takes a conversation over', () => {
  it('stops the agent, answers in its place in order, and gives it back with all messages', async () => {
    fixture.model.when('where is my parcel', [say('Let me see'), hang()]);
    const running = await fixture.write(bob, 'where is my parcel');
    await eventually(() => fixture.model.requests.some(({ userText }) => userText.includes('where is my parcel')));
    // Its first turn runs: there is no session file yet, and so nothing that could be taken over.
    expect((await fixture.ask('admin', `${session()}/handoff`, { body: {} })).status).toBe(404);
    await fixture.ask('admin', `/api/turns/${running}/cancel`, { method: 'POST' });
    await fixture.ended(bob, running);

    fixture.model.when('hello? anybody?', [say('One moment'), hang()]);
    const second = await fixture.write(bob, 'hello? anybody?');
    await eventually(() => fixture.model.requests.some(({ userText }) => userText.includes('hello? anybody?')));
    await takeOver();
    const cut = await fixture.ended(bob, second);
    expect(cut.turns.at(-1)).toMatchObject({ id: second, status: 'cancelled' });

    const asked = fixture.model.requests.length;
    await fixture.say(bob, 'still there?');
    const { json } = await fixture.ask('admin', `${session()}/messages`, { body: { message: 'Anna here: it comes on Monday.' } });
    await fixture.say(bob, 'thanks, Anna');
    const held = await fixture.ended(bob, String(json['turnId']));
    expect(fixture.model.requests).toHaveLength(asked);
    expect(held.messages.slice(-3)).toMatchObject([
      { role: 'user', text: 'still there?' },
      { role: 'assistant', text: 'Anna here: it comes on Monday.', by: { kind: 'key' } },
      { role: 'user', text: 'thanks, Anna' },
    ]);
    expect(held.turns.slice(-3)).toMatchObject([
      { heldBack: 'handoff' },
      { origin: 'person', usage: { inputTokens: 0 } },
      { heldBack: 'handoff' },
    ]);
    expect(await sentTo(bob)).toEqual(['notice: A colleague will answer.', 'person: Anna here: it comes on Monday.']);

    expect((await fixture.ask('admin', `${session()}/resume`, { body: {} })).json).toMatchObject({
      isPaused: false,
      handoff: { state: 'resumed', resumedBy: { kind: 'key' } },
    });
    expect(fixture.model.requests).toHaveLength(asked);
    fixture.model.when('can you change the address', [say('Done.')]);
    await fixture.say(bob, 'can you change the address');
    const shown = JSON.stringify(fixture.model.requests.at(-1)?.body.messages);
    for (const words of ['still there?', 'a person of the team wrote this message', 'Anna here: it comes on Monday.', 'thanks, Anna'])
      expect(shown).toContain(words);
  });

  it('is refused an answer where the agent has the conversation, and repeats one without saying it twice', async () => {
    await fixture.say(bob, 'hi');
    const post = async (key?: string, message = 'Anna here.') =>
      fixture.ask('admin', `${session()}/messages`, { body: { message }, ...(key === undefined ? {} : { key }) });
    expect(await post()).toMatchObject({ status: 409, json: { code: 'conflict', detail: expect.stringContaining('take it over first') } });
    await takeOver();
    const first = await post('k1');
    expect(first.status).toBe(202);
    await fixture.ended(bob, String(first.json['turnId']));
    await fixture.ask('admin', `${session()}/resume`, { body: {} });
    const again = await post('k1');
    expect(again).toMatchObject({ status: 202, json: first.json });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect((await post('k1', 'Something else.')).status).toBe(422);
    expect((await post('k2')).status).toBe(409);
    expect(await sentTo(bob)).toEqual(['notice: A colleague will answer.', 'person: Anna here.']);
  });

  it('sees who waits, with the last words, and only with a key that may', async () => {
    await fixture.say(bob, 'hi');
    expect((await fixture.ask('read', `${session()}/handoff`)).json).toEqual({ isPaused: false, handoff: null });
    await takeOver({ reason: 'My customer.', hours: 2, notify: false });
    expect((await fixture.ask('admin', `${session()}/handoff`, { body: {} })).status).toBe(200);
    const list = await fixture.ask('read', '/api/handoffs');
    expect(list.headers.get('x-total-count')).toBe('1');
    expect(list.json).toMatchObject([
      { sessionId: fixture.toSessionId(bob), reason: 'My customer.', channel: 'channel_c', title: 'hi', lastMessage: { from: 'agent' } },
    ]);
    // As a place or a picture comes, without a word.
    await fixture.say(bob, '');
    expect((await fixture.ask('read', '/api/handoffs')).json).toMatchObject([{ lastMessage: { from: 'contact', text: '' } }]);
    for (const path of ['/handoff', '/resume', '/messages'])
      expect((await fixture.ask('cs', `${session()}${path}`, { body: { message: 'x' } })).status).toBe(403);
    expect((await fixture.ask('cs', '/api/handoffs')).status).toBe(403);
    expect((await fixture.ask('admin', `/api/sessions/${'0'.repeat(32)}/handoff`, { body: {} })).status).toBe(404);
    // A staff member who took it over needs no notification.
    expect(await sentTo(owner)).toEqual([]);
  });

  it('need not give it back where it was for a time', async () => {
    await fixture.say(bob, 'hi');
    await takeOver({ hours: 1 / 3600, notify: false });
    await eventually(async () => (await fixture.ask('read', `${session()}/handoff`)).json['isPaused'] === false);
    fixture.model.when('and now', [say('I am back.')]);
    expect((await fixture.say(bob, 'and now')).messages.at(-1)).toMatchObject({ text: 'I am back.' });
  });
});

describe('an agent that requests staff', () => {
  it('notifies the owner, who answers and gives it back from their own chat', async () => {
    fixture.model.when('a person, please', [asksForPerson], [say('Somebody will answer.')]);
    await fixture.say(bob, 'a person, please');
    const [call = ''] = await sentTo(owner);
    const code = /\/answer (?<code>[0-9a-f]+)/u.exec(call)?.groups?.['code'] ?? '';
    const asked = fixture.model.requests.filter(({ userText }) => !userText.includes('waits for a person')).length;
    await fixture.say(owner, `/answer ${code} This is the owner.`);
    await eventually(async () => (await sentTo(bob)).includes('person: This is the owner.'));
    await fixture.say(owner, `/resume ${code}`);
    expect(await fixture.scope.handoffs.isPaused(fixture.toSessionId(bob))).toBe(false);
    expect(fixture.model.requests.filter(({ userText }) => !userText.includes('waits for a person'))).toHaveLength(asked);
  });

  it.each(['handoff.after-file', 'handoff.after-notify', 'accept.after-inbox', 'handoff.before-notified'])(
    'notifies each of them once when its worker dies at %s',
    async (failpoint) => {
      await fixture.breakableWorker(`${failpoint}:kill`);
      fixture.model.when('a person, please', [asksForPerson], [say('Somebody will answer.')]);
      const turnId = await fixture.write(bob, 'a person, please');
      await fixture.recoverWorker();
      await fixture.ended(bob, turnId);
      await eventually(async () => (await fixture.scope.handoffs.pending()).length === 0);
      expect(await sentTo(bob)).toEqual(['notice: A colleague will answer.']);
      expect(await sentTo(owner)).toHaveLength(1);
      const turns = await eventually(async () => {
        const { items } = await fixture.scope.index.listTurns({ limit: 50 });
        return items.some(({ origin }) => origin === 'handoff') ? items : undefined;
      });
      expect(turns.filter(({ origin }) => origin === 'handoff')).toHaveLength(1);
    },
  );

  it.each(['stream.before-append', 'session.after-publish', 'outbox.after-file', 'turn.after-save'])(
    'sends the staff member’s words once when the worker dies at %s',
    async (failpoint) => {
      await fixture.say(bob, 'hi');
      await takeOver();
      await fixture.breakableWorker(`${failpoint}:kill`);
      const { json } = await fixture.ask('admin', `${session()}/messages`, { body: { message: 'Anna here.' } });
      await fixture.recoverWorker();
      await fixture.say(bob, 'thanks');
      const { messages, turns } = await fixture.ended(bob, String(json['turnId']));
      expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant', 'user']);
      expect(turns.map(({ origin }) => origin)).toEqual(['webhook', 'person', 'webhook']);
      expect(await sentTo(bob)).toEqual(['notice: A colleague will answer.', 'person: Anna here.']);
    },
  );
});
