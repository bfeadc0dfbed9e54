import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcceptedTurn, Session, TurnRecord } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ToolTenant } from './tool-tenant.ts';

const bob = {
  agent: 'cs',
  authority: 'cs',
  sender: '4242',
  channel: 'channel_c',
  sessionId: deriveSessionId('cs', 'channel_c', '4242'),
  channelMessage: { address: { to: '4242', thread: null }, isGroup: false, messageRef: '7', media: [], replyTo: null },
} satisfies Partial<AcceptedTurn>;

let tenant: ToolTenant;
let scope: TenantScope;
const box: ToolTenant['box'] = (turn, of) => tenant.box(turn, of);

beforeEach(async () => {
  tenant = await ToolTenant.create();
  scope = tenant.scope;
});
afterEach(async () => tenant[Symbol.asyncDispose]());

async function talked(sender: string, title: string): Promise<Session> {
  const at = '2027-01-01T00:00:00.000Z';
  const id = deriveSessionId('cs', 'channel_c', sender);
  const session: Session = {
    version: 1,
    id,
    agent: 'cs',
    channel: 'channel_c',
    sender,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title,
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
  };
  await scope.sessions.publish(session);
  await scope.index.putSession(session);
  return session;
}

/** A contact wrote on WhatsApp at that time. */
async function wrote(sender: string, atMs: number): Promise<void> {
  const at = new Date(atMs).toISOString();
  const record: TurnRecord = {
    id: 't_before',
    status: 'done',
    origin: 'webhook',
    acceptedAt: at,
    startedAt: at,
    firstTextAt: at,
    endedAt: at,
    attempts: 1,
    usage: { inputTokens: 0, outputTokens: 0 },
    models: [],
    finishReason: 'stop',
    error: null,
    steps: [],
    requestHash: '',
    keyId: null,
  };
  const session = await talked(sender, 'Parcel');
  const id = deriveSessionId('cs', 'channel_a', sender);
  await scope.sessions.publish({ ...session, id, channel: 'channel_a', turns: [record] });
}

describe('message', () => {
  it('is refused while the channel is not connected, and explains how to connect it', async () => {
    const { call, failures } = box();
    const { output, isError } = await call('message', { channel: 'telegram', to: '4242', text: 'Hello' });
    expect(isError).toBe(true);
    expect(output).toContain('telegram is not connected, so nothing can be sent there.');
    expect(output).toContain('concierge channel connect <tenant> telegram');
    expect(await scope.outbox.waiting()).toEqual([]);
    expect(failures).toEqual([]);
  });

  it('is on disk before the tool answers, once, and the answer does not claim that it has arrived', async () => {
    await tenant.connectTelegram();
    const { call } = box();
    const first = await call('message', { channel: 'telegram', to: '4242', text: 'Your parcel is here.' });
    expect(first.isError).toBe(false);
    expect(first.output).toMatch(/^ON ITS WAY\. Message m_[0-9a-f]{32} for 4242 on telegram is accepted/u);
    expect(await scope.outbox.waiting()).toMatchObject([
      { kind: 'message', channel: 'channel_c', to: '4242', text: 'Your parcel is here.', turnId: 't1' },
    ]);
    expect((await call('message', { channel: 'telegram', to: '4242', text: 'Your parcel is here.' })).output).toContain(
      'had been accepted by this same call',
    );
    expect(await scope.outbox.waiting()).toHaveLength(1);
    await call('message', { channel: 'telegram', to: '4242', text: 'And another.' }, 'c2');
    expect(await scope.outbox.waiting()).toHaveLength(2);
  });

  describe('on whatsapp', () => {
    const to = '+49 (151) 123-45678';
    const id = '4915112345678';
    const sessionId = deriveSessionId('cs', 'channel_a', id);
    const text = 'Hello';

    beforeEach(async () => {
      await scope.channels.connect('channel_a', { phoneNumberId: '1', accessToken: 'a', verifyToken: 'v', appSecret: 's' });
    });

    it('writes phone numbers as the channel does, and states until when the contact can be written to', async () => {
      await wrote(id, Date.now() - 3_600_000);
      const { output } = await box().call('message', { channel: 'whatsapp', to, text });
      expect(output).toContain('for 4915112345678 on whatsapp');
      expect(output).toContain('Reply window: open until ');
    });

    it('is refused before anything is kept while the reply window is closed, and states since when and what may be sent', async () => {
      const never = await box().call('message', { channel: 'whatsapp', to, text });
      expect(never).toMatchObject({ isError: true, output: expect.stringContaining('has never been open') });
      await wrote(id, Date.parse('2026-01-01T12:00:00.000Z'));
      const { output, isError } = await box().call('message', { channel: 'whatsapp', to, text });
      expect(isError).toBe(true);
      expect(output).toContain('closed since 2026-01-02T11:59:30.000Z');
      expect(output).toContain('Give template');
      expect(await scope.outbox.waiting()).toEqual([]);
    });

    it('may be an approved template whenever it is', async () => {
      const template = { name: 'parcel_here', language: 'en_US', variables: ['Ann'] };
      const { output, isError } = await box().call('message', { channel: 'whatsapp', to, text, template });
      expect(isError).toBe(false);
      expect(output).toContain('Template "parcel_here"');
      expect(await scope.outbox.waiting()).toMatchObject([{ template, sessionId }]);
      await tenant.connectTelegram();
      expect(await box().call('message', { channel: 'telegram', to: '4242', text, template })).toMatchObject({
        isError: true,
        output: expect.stringContaining('Templates are for whatsapp only'),
      });
    });
  });

  it('reports that it is withheld where a staff member has the conversation', async () => {
    await tenant.connectTelegram();
    await scope.handoffs.request(bob.sessionId, { reason: 'asked', by: { kind: 'operator' } });
    const { output } = await box().call('message', { channel: 'telegram', to: '4242', text: 'Hello' });
    expect(output).toMatch(/^WITHHELD\..*not sent, not later either/u);
  });

  it.each([
    ['telegram', 'ann'],
    ['telegram', '@ann'],
    ['telegram', '../../etc'],
    ['slack', 'general'],
    ['messenger', 'U123'],
    ['whatsapp', '0151 123'],
  ])('finds no contact on %s for %s', async (channel, to) => {
    await tenant.connectTelegram();
    await scope.channels.connect('channel_a', { phoneNumberId: '1', accessToken: 'a', verifyToken: 'v', appSecret: 's' });
    await scope.channels.connect('channel_b', { pageId: '1', accessToken: 'a', verifyToken: 'v', appSecret: 's' });
    await scope.channels.connect('channel_d', { botToken: 'b', signingSecret: 's', teamId: 'T1', botUserId: 'U1' });
    const { output, isError } = await box().call('message', { channel, to, text: 'Hello' });
    expect(isError).toBe(true);
    expect(output).toContain(`"${to}" is nobody on ${channel}`);
  });

  it.each([
    { channel: 'web', to: '4242', text: 'Hello' },
    { channel: 'telegram', to: '4242', text: '' },
    { channel: 'telegram', to: '4242', text: 'x'.repeat(32_001) },
    { channel: 'telegram', to: '4242' },
    { channel: 'telegram', to: '4242', text: 'Hello', at: 'noon' },
  ])('is not valid as %#', async (input) => {
    await tenant.connectTelegram();
    expect((await box().call('message', input)).output).toMatch(/^The arguments of message are not valid/u);
  });

  it('is refused on a channel that was disabled, with the reason', async () => {
    await tenant.connectTelegram();
    await scope.channels.setDisabled('channel_c', 'the token was revoked');
    expect((await box().call('message', { channel: 'telegram', to: '4242', text: 'Hello' })).output).toContain(
      'disabled: the token was revoked',
    );
  });

  it('is refused for a chat that has blocked the bot, until it lets the bot in again', async () => {
    await tenant.connectTelegram();
    await scope.contacts.noteReach('channel_c', '4343', 'unreachable');
    const send = async () => (await box().call('message', { channel: 'telegram', to: '4343', text: 'Hello' })).output;
    expect(await send()).toContain('has blocked the bot');
    expect(await scope.outbox.waiting()).toEqual([]);
    await scope.contacts.noteReach('channel_c', '4343', 'reachable');
    expect(await send()).toContain('ON ITS WAY');
  });

  it('does not exist for cs, nor do channels and cron', async () => {
    await tenant.connectTelegram();
    const { call } = box(bob);
    for (const name of ['message', 'channels', 'cron']) {
      expect(await call(name, { action: 'list' })).toMatchObject({
        isError: true,
        output: expect.stringContaining(`There is no tool "${name}"`),
      });
    }
    expect(await scope.outbox.waiting()).toEqual([]);
  });
});

describe('reply', () => {
  it('is a part of the conversation on a channel', async () => {
    await tenant.connectTelegram();
    const { output, isError } = await box(bob).call('reply', { text: 'One moment …' });
    expect(isError).toBe(false);
    expect(output).toContain('ON ITS WAY');
    expect(await scope.outbox.waiting()).toMatchObject([
      { kind: 'reply', channel: 'channel_c', to: '4242', sessionId: bob.sessionId, agent: 'cs' },
    ]);
  });

  it('goes where the turn came from: the thread of a group, not the contact', async () => {
    await scope.channels.connect('channel_d', { botToken: 'b', signingSecret: 's', teamId: 'T1', botUserId: 'U1' });
    const channelMessage = { ...bob.channelMessage, address: { to: 'C0123', thread: '1700000000.000100' }, isGroup: true };
    await box({ ...bob, channel: 'channel_d', sender: 'C0123:U7', channelMessage }).call('reply', { text: 'One moment …' });
    expect(await scope.outbox.waiting()).toMatchObject([{ to: 'C0123', thread: '1700000000.000100' }]);
  });

  it('is plain speech for a conversation that only bears the name of a channel', async () => {
    await tenant.connectTelegram();
    const { channelMessage: _, ...fromApi } = bob;
    expect(await box(fromApi).call('reply', { text: 'Hi' })).toMatchObject({ isError: true });
    expect(await scope.outbox.waiting()).toEqual([]);
  });

  it('is plain speech on the web, for cs and for the owner', async () => {
    for (const turn of [{ ...bob, channel: 'web' as const }, {}]) {
      const { output, isError } = await box(turn).call('reply', { text: 'One moment …' });
      expect(isError).toBe(true);
      expect(output).toContain('Say it in your answer');
    }
  });

  it('is refused while the channel is not connected, and while a staff member has the conversation', async () => {
    expect((await box(bob).call('reply', { text: 'Hi' })).output).toContain('telegram is not connected');
    await tenant.connectTelegram();
    await scope.handoffs.request(bob.sessionId, { reason: 'asked', by: { kind: 'operator' } });
    expect(await box(bob).call('reply', { text: 'Hi' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('A person has taken'),
    });
    expect(await scope.outbox.waiting()).toEqual([]);
  });
});

describe('channels', () => {
  it('reports of each channel whether it is connected, what it has and how to connect it, without a secret', async () => {
    await tenant.connectTelegram();
    await scope.channels.noteError('channel_c', { code: '401', message: 'The token is not valid.' });
    const { output, isError } = await box().call('channels');
    expect(isError).toBe(false);
    expect(output).toContain('whatsapp: not connected. The owner connects it with an admin key (PUT /api/channels/whatsapp)');
    expect(output).toContain('telegram: enabled');
    expect(output).toContain('botToken set, secretToken set');
    expect(output).toContain('The token is not valid. (401)');
    expect(output).not.toContain('very-secret');
  });

  it('reports when a binding cannot be used here', async () => {
    await tenant.connectTelegram();
    const file = await readFile(join(scope.root, 'channels', 'channel_c.json'));
    const other = await tenant.tenants.create('other');
    await writeFile(join(other.root, 'channels', 'channel_c.json'), file);
    expect((await box({}, other).call('channels')).output).toMatch(/telegram: broken \(.*connect it again\)/u);
    expect((await box({}, other).call('message', { channel: 'telegram', to: '1', text: 'x' })).output).toContain('connected but broken');
  });
});

describe('contacts', () => {
  it('are listed, searched and shown to the owner', async () => {
    await talked('4242', 'Parcel');
    await scope.contacts.remember({ sender: '4242', displayName: 'Bob Miller' });
    const { call } = box();
    expect((await call('contacts')).output).toBe('4242 "Bob Miller"; last seen 2027-01-01T00:00:00.000Z on telegram');
    expect((await call('contacts', { action: 'search', query: 'mill' })).output).toContain('Bob Miller');
    expect((await call('contacts', { action: 'search', query: 'zoe' })).output).toContain('Nobody is known as "zoe"');
    expect((await call('contacts', { action: 'show', sender: '4242' })).output).toContain(
      `Conversation ${bob.sessionId} with cs on telegram`,
    );
    expect(await call('contacts', { action: 'show', sender: 'zoe' })).toMatchObject({ isError: true });
    expect(await call('contacts', { action: 'search' })).toMatchObject({
      isError: true,
      output: 'search needs query: a part of a name, or an id.',
    });
  });

  it('are only the contact itself for cs, however it asks', async () => {
    await talked('4242', 'Parcel');
    await talked('7777', 'Of Eve');
    await scope.contacts.remember({ sender: '7777', displayName: 'Eve' });
    const { call } = box(bob);
    expect((await call('contacts')).output).toContain('Contact 4242');
    expect((await call('contacts', { action: 'show', sender: '4242' })).output).toContain('Contact 4242');
    for (const input of [{ action: 'list' }, { action: 'search', query: 'Eve' }, { action: 'show', sender: '7777' }]) {
      const { output, isError } = await call('contacts', input);
      expect(isError).toBe(true);
      expect(output).not.toMatch(/Of Eve|7777 "/u);
    }
    expect((await box({ ...bob, sender: null }).call('contacts')).output).toContain('new or anonymous');
  });
});

describe('handoff', () => {
  it('pauses the conversation of the cs agent, which cannot take it back', async () => {
    const { call, failures } = box(bob);
    const { output, isError } = await call('handoff', { action: 'request', reason: 'Wants to speak about a refund.' });
    expect(isError).toBe(false);
    expect(output).toContain('A person is asked for.');
    expect(output).toContain('nothing that an agent writes is sent to the contact on a chat app');
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(true);
    expect((await call('handoff', { action: 'request', reason: 'again' })).output).toContain('had been asked for already');
    expect((await call('handoff', { action: 'status' })).output).toContain('Wants to speak about a refund.');
    expect(await call('handoff', { action: 'resume' })).toMatchObject({ isError: true });
    expect(await scope.handoffs.isPaused(bob.sessionId)).toBe(true);
    expect(failures).toEqual([]);
  });

  it('is about its own conversation alone for cs', async () => {
    const other = await talked('7777', 'Of Eve');
    await scope.handoffs.request(other.id, { reason: 'a secret of Eve', by: { kind: 'operator' } });
    const { call } = box(bob);
    for (const action of ['request', 'status', 'resume']) {
      const { output, isError } = await call('handoff', { action, reason: 'x', session_id: other.id });
      expect(isError).toBe(true);
      expect(output).not.toContain('secret of Eve');
    }
    expect((await call('handoff', { action: 'status' })).output).not.toContain('Eve');
    expect(await scope.handoffs.isPaused(other.id)).toBe(true);
  });

  it('is seen and ended by the owner’s agent', async () => {
    const conversation = await talked('4242', 'Parcel');
    await box(bob).call('handoff', { action: 'request', reason: 'Refund.' });
    const { call } = box();
    expect((await call('handoff', { action: 'status' })).output).toContain(
      `Conversation ${conversation.id}: paused; asked for by the agent cs`,
    );
    expect((await call('handoff', { action: 'resume', session_id: conversation.id })).output).toContain('is resumed');
    expect((await call('handoff', { action: 'resume', session_id: conversation.id })).output).toContain('nothing to resume');
    expect(await scope.handoffs.isPaused(conversation.id)).toBe(false);
    expect((await call('handoff', { action: 'status', session_id: conversation.id })).output).toContain('resumed by the agent admin');
    expect(await call('handoff', { action: 'request', reason: 'x', session_id: 'f'.repeat(32) })).toMatchObject({ isError: true });
    expect(await call('handoff', { action: 'request' })).toMatchObject({ isError: true });
    expect(await call('handoff', { action: 'request', reason: 'x' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('This conversation is with the owner'),
    });
  });
});
