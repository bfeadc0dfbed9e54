import { describe, expect, it } from '@jest/globals';
import { replyText } from '@concierge/client';
import { eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { Conversation, type ConversationOptions, type ConversationTarget } from '../src/chat/conversation.ts';
import type { ChatTurn } from '../src/chat/chat-turn.ts';
import { GatewayClient } from '../src/chat/gateway-client.ts';
import { SavedTurnStore } from '../src/chat/saved-turns.ts';
import { ScriptedGateway, storedSession } from './scripted-gateway.ts';

const contact = 'c'.repeat(32);

let gateway: ScriptedGateway;
let storage: Map<string, string>;
let conversations: Conversation[];
let keys: number;

setUpEach(async (stack) => {
  gateway = stack.use(await ScriptedGateway.start());
  storage = new Map();
  conversations = [];
  keys = 0;
  stack.defer(() => {
    for (const conversation of conversations) conversation.close();
  });
});

/** As after a reload: a new conversation over what the tab's storage has. */
async function openPage(
  target: Partial<ConversationTarget> = {},
  { keepEnded = false, onContact }: Partial<Pick<ConversationOptions, 'keepEnded' | 'onContact'>> = {},
): Promise<Conversation> {
  const conversation = new Conversation({
    target: { agent: 'admin', contactId: null, sender: null, channel: 'web', ...target },
    gateway: new GatewayClient({ key: 'ck_live_test', base: gateway.url }),
    saved: new SavedTurnStore({
      getItem: (name) => storage.get(name) ?? null,
      setItem: (name, text) => void storage.set(name, text),
      removeItem: (name) => void storage.delete(name),
    }),
    restore: true,
    keepEnded,
    ...(onContact === undefined ? {} : { onContact }),
    wait: async (_ms, signal) => {
      // The next turn of the event loop: as fast as it goes, and still a pause.
      await new Promise<void>((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    },
    newKey: () => `key-${String((keys += 1))}`,
    now: () => new Date('2026-11-20T12:00:00Z'),
  });
  conversations.push(conversation);
  await conversation.open();
  return conversation;
}

const say = (conversation: Conversation, text: string): void => conversation.send({ text, attachments: [] });
const listTurns = (conversation: Conversation): readonly ChatTurn[] => conversation.snapshot().turns;
const listStates = (conversation: Conversation): string[] => listTurns(conversation).map((turn) => turn.state.at);
const listReplies = (conversation: Conversation): string[] => listTurns(conversation).map(replyText);

/** Within the time that a test has, so that a failure names what was waited for. */
async function soon(check: () => boolean | undefined): Promise<void> {
  await eventually(check);
}

async function reaches(conversation: Conversation, ...states: string[]): Promise<void> {
  await soon(() => {
    expect(listStates(conversation)).toEqual(states);
    return true;
  });
}

describe('a conversation', () => {
  it('learns its id from the first event, shows words as they come and the end', async () => {
    const page = await openPage();
    say(page, 'Hello');
    await reaches(page, 'waiting');
    expect(page.snapshot().contactId).toBe(contact);
    gateway.turn(0).say('Good ');
    await soon(() => listReplies(page)[0] === 'Good ');
    gateway.turn(0).say('morning');
    gateway.turn(0).finish();
    await reaches(page, 'done');
    expect(listReplies(page)).toEqual(['Good morning']);
    await soon(() => storage.size === 0);
  });

  it('is found again by a reload that began before the service had named it, and takes its new address', async () => {
    const before = await openPage();
    say(before, 'Quick');
    await reaches(before, 'waiting');
    const named = Promise.withResolvers<string>();
    const page = await openPage({}, { onContact: named.resolve });
    expect(await named.promise).toBe(contact);
    gateway.turn(0).say('Here');
    gateway.turn(0).finish();
    await reaches(page, 'done');
    expect(listReplies(page)).toEqual(['Here']);
    expect(gateway.turns).toHaveLength(1);
  });

  it('is shown while its turn runs, however many newer turns the tenant has', async () => {
    const slow = gateway.addTurn(contact);
    for (let index = 0; index < 61; index += 1) gateway.addTurn('d'.repeat(32));
    const page = await openPage({ contactId: contact });
    await reaches(page, 'running');
    slow.say('Still here');
    slow.finish();
    await reaches(page, 'done');
    expect(listReplies(page)).toEqual(['Still here']);
  });

  it('hands in messages in the order of typing and keeps one connection for all that wait', async () => {
    const page = await openPage();
    for (const text of ['one', 'two', 'three']) say(page, text);
    await reaches(page, 'waiting', 'waiting', 'waiting');
    expect(gateway.sent('POST', /admin/u).map(({ body }) => body)).toEqual([
      { message: 'one' },
      { message: 'two', contact_id: contact },
      { message: 'three', contact_id: contact },
    ]);
    await soon(() => gateway.turns.map((turn) => turn.readers).join() === '1,0,0');
    for (const turn of gateway.turns) {
      turn.say(`reply ${turn.id}`);
      turn.finish();
    }
    await reaches(page, 'done', 'done', 'done');
    expect(listReplies(page)).toEqual(['reply t1', 'reply t2', 'reply t3']);
  });

  it.each([false, true])('resumes a broken stream without gap or repetition (replayed from the start: %s)', async (replaysAll) => {
    gateway.replaysAll = replaysAll;
    const page = await openPage();
    say(page, 'Count');
    await reaches(page, 'waiting');
    for (const word of ['one ', 'two ', 'three']) {
      await soon(() => gateway.turn(0).readers === 1);
      gateway.turn(0).say(word);
      await soon(() => listReplies(page)[0]?.endsWith(word));
      gateway.turn(0).cut();
    }
    await soon(() => gateway.turn(0).readers === 1);
    gateway.turn(0).finish();
    await reaches(page, 'done');
    expect(listReplies(page)).toEqual(['one two three']);
    expect(gateway.sent('GET', /events/u).map(({ headers }) => headers['last-event-id'])).toEqual(['t1-1', 't1-2', 't1-3']);
  });

  it('sends a message again as the same one when the connection broke before the service could answer', async () => {
    gateway.failNext('cut', 'shutting_down', 'cut');
    const page = await openPage();
    say(page, 'Once only');
    await reaches(page, 'waiting');
    expect(gateway.turns).toHaveLength(1);
    const sent = gateway.sent('POST', /admin/u);
    expect(new Set(sent.map(({ headers }) => headers['idempotency-key']))).toEqual(new Set(['key-1']));
    expect(sent).toHaveLength(4);
  });

  it.each(['refresh', 'open'] as const)('shows its newest name, though an answer to %s from before comes last', async (way) => {
    const named = (title: string) => gateway.sessions.set(contact, { ...storedSession(contact, 't0', ['Before', 'Yes']), title });
    named('Old name');
    const page = await openPage({ contactId: contact });
    const answer = Promise.withResolvers<void>();
    gateway.heldSessions.push(answer.promise);
    const late = page[way]();
    await soon(() => gateway.sent('GET', /sessions/u).length === 2);
    named('New name');
    const again = page.refresh();
    // What is asked for behind an opening waits for its answer.
    if (way === 'refresh') await again;
    answer.resolve();
    await Promise.all([late, again]);
    expect(page.snapshot().title).toBe('New name');
  });

  it('shows why a message was refused, and takes it back or sends it again', async () => {
    gateway.failNext('too_many_waiting', 'rate_limited');
    const page = await openPage();
    say(page, 'first');
    say(page, 'second');
    await reaches(page, 'unsent', 'unsent');
    expect(listTurns(page)[0]?.state).toMatchObject({ failure: { code: 'too_many_waiting' } });
    expect(page.queue.takeBack('key-1')).toMatchObject({ text: 'first' });
    page.retry('key-2');
    await reaches(page, 'waiting');
    expect(gateway.turns).toHaveLength(1);
  });

  it('stops the running turn and keeps its text', async () => {
    const page = await openPage();
    say(page, 'Tell me a story');
    await reaches(page, 'waiting');
    gateway.turn(0).say('Once upon');
    await reaches(page, 'running');
    await page.stop('key-1');
    await reaches(page, 'done');
    expect(listTurns(page)[0]).toMatchObject({ state: { finishReason: 'cancelled' }, parts: [{ text: 'Once upon' }] });
  });

  it('leaves a turn as it is that has ended before it is stopped', async () => {
    const page = await openPage();
    say(page, 'Tell me a story');
    await reaches(page, 'waiting');
    gateway.turn(0).finish();
    await reaches(page, 'done');
    await page.stop('key-1');
    expect(listTurns(page)[0]).toMatchObject({ state: { finishReason: 'stop' }, stopping: false });
    expect(gateway.sent('POST', /cancel/u)).toEqual([]);
  });

  it('asks a failed turn again as a new one', async () => {
    const page = await openPage();
    say(page, 'Try');
    await reaches(page, 'waiting');
    gateway.turn(0).emit({ type: 'error', data: { code: 'provider_error', message: 'broke', retryable: true, turnId: 't1' } });
    await reaches(page, 'failed');
    page.retry('key-1');
    await reaches(page, 'failed', 'waiting');
    expect(gateway.sent('POST', /admin/u).map(({ headers }) => headers['idempotency-key'])).toEqual(['key-1', 'key-2']);
  });

  it('asks a failed turn again once, however often that is pressed before the page is drawn anew', async () => {
    const page = await openPage();
    say(page, 'Try');
    await reaches(page, 'waiting');
    gateway.turn(0).emit({ type: 'error', data: { code: 'provider_error', message: 'broke', retryable: true, turnId: 't1' } });
    await reaches(page, 'failed');
    page.retry('key-1');
    page.retry('key-1');
    await reaches(page, 'failed', 'waiting');
    expect(gateway.sent('POST', /admin/u)).toHaveLength(2);
  });

  it('is loaded once when that is asked for twice, so that what is written after it stays', async () => {
    gateway.sessions.set(contact, storedSession(contact, 't0', ['Before', 'Yes']));
    const page = await openPage({ contactId: contact });
    const loaded = gateway.sent('GET', /sessions/u).length;
    const [once, again] = [page.open(), page.open()];
    await once;
    say(page, 'After');
    await again;
    await reaches(page, 'done', 'waiting');
    expect(gateway.sent('GET', /sessions/u)).toHaveLength(loaded + 1);
  });

  it('asks in another conversation without showing it, also when it is not shown itself any more', async () => {
    gateway.sessions.set(contact, storedSession(contact, 't0', ['Before', 'Yes']));
    const page = await openPage({ contactId: contact });
    page.close();
    page.askIn('d'.repeat(32), { text: 'There', attachments: [] });
    await soon(() => gateway.turns.length === 1 && gateway.turn(0).readers === 0);
    expect(gateway.sent('POST', /admin/u).map(({ body }) => body)).toEqual([{ message: 'There', contact_id: 'd'.repeat(32) }]);
    expect(listStates(page)).toEqual(['done']);
    const there = await openPage({ contactId: 'd'.repeat(32) });
    await reaches(there, 'running');
    expect(listTurns(there)[0]?.question?.text).toBe('There');
  });

  it('leaves the turn running when the page is left, and still hands in what was being sent', async () => {
    const page = await openPage();
    say(page, 'one');
    await reaches(page, 'waiting');
    say(page, 'two');
    page.close();
    await soon(() => gateway.turns.length === 2);
    await soon(() => gateway.turns.every((turn) => turn.readers === 0));
    expect(gateway.sent('POST', /cancel/u)).toEqual([]);
  });
});

describe('after a reload', () => {
  it('shows the stored turns, the running one from its start, and the waiting ones', async () => {
    gateway.sessions.set(contact, storedSession(contact, 't0', ['Earlier', 'Stored']));
    const before = await openPage({ contactId: contact });
    say(before, 'running');
    say(before, 'waiting');
    await reaches(before, 'done', 'waiting', 'waiting');
    gateway.turn(0).say('Half a ');
    await reaches(before, 'done', 'running', 'waiting');
    before.close();

    const page = await openPage({ contactId: contact });
    await soon(() => listReplies(page)[1] === 'Half a ');
    gateway.turn(0).say('sentence');
    gateway.turn(0).finish();
    gateway.turn(1).finish();
    await reaches(page, 'done', 'done', 'done');
    expect(listTurns(page).map((turn) => turn.question?.text)).toEqual(['Earlier', 'running', 'waiting']);
    expect(listReplies(page)).toEqual(['Stored', 'Half a sentence', '']);
    expect(gateway.turns).toHaveLength(2);
  });

  it('sends the first message of a conversation again, as the same one, when its answer had not come', async () => {
    gateway.failNext('hang');
    const before = await openPage();
    say(before, 'Hello');
    // Left in the very moment in which the service has accepted it and the page does not know.
    await soon(() => gateway.turns.length === 1);
    const page = await openPage();
    await reaches(page, 'waiting');
    gateway.turn(0).finish();
    await reaches(page, 'done');
    expect(gateway.turns).toHaveLength(1);
    expect(listTurns(page)[0]?.question?.text).toBe('Hello');
  });

  it('follows a turn that was asked elsewhere, and shows its question once it is stored', async () => {
    gateway.addTurn(contact).say('An answer');
    const page = await openPage({ contactId: contact });
    await reaches(page, 'running');
    expect(listTurns(page)[0]?.question).toBeNull();
    gateway.sessions.set(contact, storedSession(contact, 't1', ['Asked on the phone', 'An answer']));
    gateway.turn(0).finish();
    await soon(() => listTurns(page)[0]?.question?.text === 'Asked on the phone');
    expect(listReplies(page)).toEqual(['An answer']);
  });

  it('shows all of a long message that was asked elsewhere, with its files, once it is stored', async () => {
    const asked = `Please read this ${'again and '.repeat(40)}again.`;
    gateway.addTurn(contact, asked).say('I have');
    const page = await openPage({ contactId: contact });
    await reaches(page, 'running');
    expect(listTurns(page)[0]?.question).toMatchObject({ text: expect.stringMatching(/^Please .*…$/u), isExcerpt: true });
    const { messages, ...session } = storedSession(contact, 't1', [asked, 'I have']);
    const file = { id: `u_${'f'.repeat(32)}`, name: 'plan.pdf', type: 'application/pdf' as const, size: 9 };
    gateway.sessions.set(contact, {
      ...session,
      messages: messages.map((message) => (message.role === 'user' ? { ...message, attachments: [file] } : message)),
    });
    gateway.turn(0).finish();
    await soon(() => listTurns(page)[0]?.question?.text === asked);
    expect(listTurns(page)[0]?.question).toEqual({ text: asked, attachments: [file], at: expect.any(String) });
    expect(listReplies(page)).toEqual(['I have']);
  });

  it('neither hides nor asks anew what was answered before the page has heard of it', async () => {
    const page = await openPage();
    for (const text of ['one', 'two']) say(page, text);
    await reaches(page, 'waiting', 'waiting');
    // Its end is known when the first one has ended: only that is followed.
    gateway.turn(1).say('reply two');
    gateway.turn(1).finish();
    expect(await page.queue.edit('key-2', 'other')).toBe(false);
    gateway.turn(0).finish();
    await reaches(page, 'done', 'done');
    expect(listTurns(page)[1]?.question?.text).toBe('two');
    expect(listReplies(page)[1]).toBe('reply two');
    expect(gateway.sent('POST', /admin$/u)).toHaveLength(2);
  });

  it('does not ask again with the beginning of a message of which it does not know the rest', async () => {
    gateway.addTurn(contact, 'Try this '.repeat(40));
    const page = await openPage({ contactId: contact });
    gateway.turn(0).emit({ type: 'error', data: { code: 'provider_error', message: 'broke', retryable: true, turnId: 't1' } });
    await reaches(page, 'failed');
    page.retry('t1');
    // Whatever is sent is sent in order.
    say(page, 'Then this');
    await reaches(page, 'failed', 'waiting');
    expect(gateway.sent('POST', /admin/u).map(({ body }) => body)).toEqual([{ message: 'Then this', contact_id: contact }]);
  });

  it('takes the stored reply when the stream is not kept any more', async () => {
    const before = await openPage();
    say(before, 'Long ago');
    await reaches(before, 'waiting');
    before.close();
    gateway.turns.length = 0;
    gateway.sessions.set(contact, storedSession(contact, 't1', ['Long ago', 'Done since']));
    const page = await openPage({ contactId: contact });
    await reaches(page, 'done');
    expect(listReplies(page)).toEqual(['Done since']);
  });

  it('reports it when there is no such conversation', async () => {
    const page = await openPage({ contactId: contact });
    expect(page.snapshot().load).toMatchObject({ at: 'failed', failure: { code: 'not_found' } });
  });
});

describe('towards cs', () => {
  it('replays the conversation after a reload with a key that may not read what is stored', async () => {
    gateway.sessions.set(contact, 'hidden');
    const before = await openPage({ agent: 'cs' }, { keepEnded: true });
    before.playContact({ sender: 'ada', channel: 'web' });
    for (const text of ['one', 'two']) say(before, text);
    await reaches(before, 'waiting', 'waiting');
    for (const turn of gateway.turns) {
      turn.say(`reply ${turn.id}`);
      turn.finish();
    }
    await reaches(before, 'done', 'done');
    before.close();

    const page = await openPage({ agent: 'cs', contactId: contact }, { keepEnded: true });
    await reaches(page, 'done', 'done');
    expect(listReplies(page)).toEqual(['reply t1', 'reply t2']);
    expect(page.snapshot().sender).toBe('ada');
  });

  it('writes nothing into a conversation that a customer has, also after a reload', async () => {
    gateway.sessions.set(contact, {
      ...storedSession(contact, 't0', ['Where is my parcel?', 'On its way']),
      agent: 'cs',
      channel: 'channel_a',
    });
    for (const page of [await openPage({ contactId: contact }), await openPage({ contactId: contact })]) {
      await reaches(page, 'done');
      expect(page.snapshot().isCustomers).toBe(true);
      say(page, 'I am the owner');
      await reaches(page, 'done');
    }
    expect(gateway.sent('POST', /cs|admin/u)).toEqual([]);
  });

  it('goes on writing, after a reload, as the contact that this tab plays', async () => {
    const before = await openPage({ agent: 'cs' });
    say(before, 'Hello');
    await reaches(before, 'waiting');
    gateway.turn(0).finish();
    await reaches(before, 'done');
    before.close();
    gateway.sessions.set(contact, { ...storedSession(contact, 't1', ['Hello', '']), agent: 'cs' });
    const page = await openPage({ contactId: contact });
    expect(page.snapshot().isCustomers).toBe(false);
    say(page, 'And again');
    await soon(() => gateway.sent('POST', /cs/u).length === 2);
  });

  it('plays the contact that was chosen, and shows that contact’s earlier messages', async () => {
    gateway.sessions.set(contact, storedSession(contact, 't0', ['Hi again', 'Welcome back']));
    const page = await openPage({ agent: 'cs' });
    page.playContact({ sender: '+49 1', channel: 'channel_a' });
    say(page, 'And now?');
    await reaches(page, 'done', 'waiting');
    expect(gateway.sent('POST', /cs/u)[0]?.body).toEqual({ message: 'And now?', sender: '+49 1', channel: 'channel_a' });
    page.playContact({ sender: 'somebody else', channel: 'web' });
    expect(page.snapshot().sender).toBe('+49 1');
  });
});
