import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allTools, ToolBox, toolScope, ToolSet, type ToolOutcome } from '@concierge/agent';
import type { AcceptedTurn, Session } from '@concierge/contract';
import { createLog } from '@concierge/runtime';
import { openIndex, sessionIdOf, Tenants, type IndexStore, type TenantScope } from '@concierge/tenant';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { unusedCapabilities } from '../src/fixtures/tool-fixture.ts';

const log = createLog({ service: 'test', level: 'silent' });
const signal = new AbortController().signal;
const bob = {
  agent: 'cs',
  authority: 'cs',
  sender: '4242',
  channel: 'channel_c',
  sessionId: sessionIdOf('cs', 'channel_c', '4242'),
} as const;

let folder: string;
let index: IndexStore;
let tenants: Tenants;
let scope: TenantScope;

interface Box {
  readonly failures: unknown[];
  readonly call: (name: string, input?: Record<string, unknown>, id?: string) => Promise<ToolOutcome>;
}

function box(turn: Partial<AcceptedTurn> = {}, of = scope): Box {
  const admin = {
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    origin: 'api',
    sender: null,
    sessionId: '0'.repeat(32),
    turnId: 't1',
  } as const;
  const status = (): never => {
    throw new Error('not part of this test');
  };
  const context = toolScope({ scope: of, turn: { ...admin, ...turn }, capabilities: unusedCapabilities, status });
  const failures: unknown[] = [];
  const tools = new ToolBox({ set: new ToolSet(allTools, context.access), context, onFailure: (failure) => failures.push(failure) });
  return {
    failures,
    call: async (name, input = {}, id = 'c1') => tools.call({ id, name, arguments: JSON.stringify(input) }, signal),
  };
}

async function talked(sender: string, title: string): Promise<Session> {
  const at = '2027-01-01T00:00:00.000Z';
  const id = sessionIdOf('cs', 'channel_c', sender);
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

const connectTelegram = async (): Promise<unknown> =>
  scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'concierge-messaging-'));
  index = await openIndex({ databaseUrl: undefined, dataDir: folder, log });
  tenants = new Tenants({ dataDir: folder, index, keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40), log });
  scope = await tenants.create('acme');
});
afterEach(async () => {
  await index.close();
  await rm(folder, { recursive: true });
});

describe('message', () => {
  it('is refused while the app is not connected, and says how to connect it', async () => {
    const { call, failures } = box();
    const { output, isError } = await call('message', { channel: 'telegram', to: '4242', text: 'Hello' });
    expect(isError).toBe(true);
    expect(output).toContain('telegram is not connected, so nothing can be sent there.');
    expect(output).toContain('concierge channel connect <tenant> telegram');
    expect(await scope.outbox.waiting()).toEqual([]);
    expect(failures).toEqual([]);
  });

  it('is on disk before the tool answers, once, and the answer does not claim that it was sent', async () => {
    await connectTelegram();
    const { call } = box();
    const first = await call('message', { channel: 'telegram', to: '4242', text: 'Your parcel is here.' });
    expect(first.isError).toBe(false);
    expect(first.output).toMatch(/^NOT SENT YET\. Kept as m_[0-9a-f]{32} for 4242 on telegram\./u);
    expect(await scope.outbox.waiting()).toMatchObject([
      { kind: 'message', channel: 'channel_c', to: '4242', text: 'Your parcel is here.', turnId: 't1' },
    ]);
    expect((await call('message', { channel: 'telegram', to: '4242', text: 'Your parcel is here.' })).output).toContain('Kept already');
    expect(await scope.outbox.waiting()).toHaveLength(1);
    await call('message', { channel: 'telegram', to: '4242', text: 'And another.' }, 'c2');
    expect(await scope.outbox.waiting()).toHaveLength(2);
  });

  it('writes phone numbers as the app does, and says that its window is not known', async () => {
    await scope.channels.connect('channel_a', { phoneNumberId: '1', accessToken: 'a', verifyToken: 'v', appSecret: 's' });
    const { output } = await box().call('message', { channel: 'whatsapp', to: '+49 (151) 123-45678', text: 'Hello' });
    expect(output).toContain('for 4915112345678 on whatsapp');
    expect(output).toContain('Reply window: unknown.');
  });

  it.each([
    ['telegram', 'ann'],
    ['telegram', '@ann'],
    ['telegram', '../../etc'],
    ['slack', 'general'],
    ['messenger', 'U123'],
    ['whatsapp', '0151 123'],
  ])('finds nobody on %s for %s', async (channel, to) => {
    await connectTelegram();
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
    await connectTelegram();
    expect((await box().call('message', input)).output).toMatch(/^The arguments of message are not valid/u);
  });

  it('is refused on a channel that was disabled, with the reason', async () => {
    await connectTelegram();
    await scope.channels.setDisabled('channel_c', 'the token was revoked');
    expect((await box().call('message', { channel: 'telegram', to: '4242', text: 'Hello' })).output).toContain(
      'disabled: the token was revoked',
    );
  });

  it('does not exist for cs, nor do channels and cron', async () => {
    await connectTelegram();
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
  it('is a part of the conversation on a chat app', async () => {
    await connectTelegram();
    const { output, isError } = await box(bob).call('reply', { text: 'One moment …' });
    expect(isError).toBe(false);
    expect(output).toContain('NOT SENT YET');
    expect(await scope.outbox.waiting()).toMatchObject([
      { kind: 'reply', channel: 'channel_c', to: '4242', sessionId: bob.sessionId, agent: 'cs' },
    ]);
  });

  it('is plain speech on the web, for cs and for the owner', async () => {
    for (const turn of [{ ...bob, channel: 'web' as const }, {}]) {
      const { output, isError } = await box(turn).call('reply', { text: 'One moment …' });
      expect(isError).toBe(true);
      expect(output).toContain('Say it in your answer');
    }
  });

  it('is refused while the app is not connected, and while a person has the conversation', async () => {
    expect((await box(bob).call('reply', { text: 'Hi' })).output).toContain('telegram is not connected');
    await connectTelegram();
    await scope.handoffs.request(bob.sessionId, { reason: 'asked', by: { kind: 'operator' } });
    expect(await box(bob).call('reply', { text: 'Hi' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('A person has taken'),
    });
    expect(await scope.outbox.waiting()).toEqual([]);
  });
});

describe('channels', () => {
  it('says of each app whether it is connected, what it has and how to connect it, without a secret', async () => {
    await connectTelegram();
    await scope.channels.noteError('channel_c', { code: '401', message: 'The token is not valid.' });
    const { output, isError } = await box().call('channels');
    expect(isError).toBe(false);
    expect(output).toContain('whatsapp: not connected. The operator connects it with: concierge channel connect <tenant> whatsapp');
    expect(output).toContain('telegram: enabled');
    expect(output).toContain('botToken set, secretToken set');
    expect(output).toContain('The token is not valid. (401)');
    expect(output).not.toContain('very-secret');
  });

  it('says when a binding cannot be used here', async () => {
    await connectTelegram();
    const file = await readFile(join(scope.root, 'channels', 'channel_c.json'));
    const other = await tenants.create('other');
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

  it('are nobody but the contact itself for cs, however it asks', async () => {
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
    expect(output).toContain('nobody is notified');
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
  });
});

describe('cron', () => {
  const daily = { action: 'create', name: 'Report', message: 'Sum up yesterday.', cron: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' };
  const idIn = (output: string): string => /s_[0-9a-f]{32}/u.exec(output)?.[0] ?? '';

  it('makes a schedule, and tells its next five runs and what is not connected', async () => {
    const { call, failures } = box();
    const { output, isError } = await call('cron', daily);
    expect(isError).toBe(false);
    expect(output).toMatch(/^Created\.\ns_[0-9a-f]{32} "Report", enabled\nWhen: cron 0 9 \* \* MON-FRI, Europe\/Berlin\n/u);
    expect(output.match(/^- (?:Mon|Tues|Wednes|Thurs|Fri)day,? \d+ \w+ \d{4} at 09:00$/gmu)).toHaveLength(5);
    expect(output).toContain('This plan’s least distance: 1 minute.');
    expect(output).toContain('NOT CONNECTED');
    expect((await call('cron', daily)).output).toContain(idIn(output));
    expect((await scope.schedules.list()).schedules).toMatchObject([
      { createdBy: { kind: 'agent', agent: 'admin', turnId: 't1' }, authority: 'admin' },
    ]);
    expect(failures).toEqual([]);
  });

  it('lists, shows, changes, pauses, resumes and removes', async () => {
    const { call } = box();
    expect((await call('cron', { action: 'list' })).output).toBe('There are no schedules.');
    const id = idIn((await call('cron', daily)).output);
    expect((await call('cron', { action: 'list' })).output).toContain(`${id} "Report": cron 0 9 * * MON-FRI, Europe/Berlin; next `);
    expect((await call('cron', { action: 'update', id, timezone: 'America/New_York' })).output).toContain(
      'cron 0 9 * * MON-FRI, America/New_York',
    );
    expect((await call('cron', { action: 'update', id, deliver_channel: 'telegram', deliver_to: '4242' })).output).toContain(
      'to 4242 on telegram',
    );
    expect((await call('cron', { action: 'update', id, deliver_channel: 'none', name: 'Daily' })).output).toContain('"Daily", enabled');
    expect((await scope.schedules.find(id))?.deliver).toBeNull();
    expect((await call('cron', { action: 'pause', id })).output).toContain('"Daily", paused');
    expect((await call('cron', { action: 'resume', id })).output).toContain('"Daily", enabled');
    expect((await call('cron', { action: 'remove', id })).output).toBe(`Removed ${id}.`);
    expect(await call('cron', { action: 'show', id })).toMatchObject({ isError: true, output: `There is no schedule ${id}. Use list.` });
    expect(await call('cron', { action: 'pause', id })).toMatchObject({ isError: true, output: 'There is no such schedule.' });
  });

  it('takes a moment in the zone it is meant in', async () => {
    await scope.updateSettings({ timezone: 'Europe/Berlin' });
    const year = String(new Date().getUTCFullYear() + 1);
    const soon = `${year}-01-15T09:00`;
    const { call } = box();
    await call('cron', { action: 'create', name: 'Once', message: 'Go.', at: soon });
    await call('cron', { action: 'create', name: 'There', message: 'Go.', at: soon, timezone: 'America/New_York' }, 'c2');
    await call('cron', { action: 'create', name: 'Said', message: 'Go.', at: `${soon}:00-03:00` }, 'c3');
    expect((await scope.schedules.list()).schedules.map(({ schedule }) => schedule)).toEqual(
      expect.arrayContaining(['08', '14', '12'].map((hour) => ({ at: `${year}-01-15T${hour}:00:00.000Z` }))),
    );
  });

  it.each([
    [{ action: 'create', name: 'x', message: 'y' }, 'exactly one of cron, every, at'],
    [{ action: 'create', cron: '0 9 * * *' }, 'create needs name, message'],
    [{ ...daily, every: '1h' }, 'exactly one of cron, every and at'],
    [{ ...daily, cron: '0 9 * *' }, '4 fields instead of five'],
    [{ ...daily, cron: '* * * * * *' }, '6 fields instead of five'],
    [{ ...daily, cron: '@hourly' }, 'instead of five'],
    [{ ...daily, cron: 'H H * * *' }, 'H is no field'],
    [{ ...daily, timezone: 'Berlin' }, 'Berlin is not a time zone'],
    [{ ...daily, agent: 'nobody' }, 'there is no agent nobody'],
    [{ ...daily, deliver_channel: 'telegram' }, 'go together'],
    [{ ...daily, deliver_channel: 'telegram', deliver_to: 'ann' }, '"ann" is nobody on telegram'],
    [{ action: 'create', name: 'x', message: 'y', every: '30s' }, 'at least 1 minute apart'],
    [{ action: 'create', name: 'x', message: 'y', every: 'often' }, 'must be a duration such as 30m'],
    [{ action: 'create', name: 'x', message: 'y', every: '1h', timezone: 'UTC' }, 'timezone goes with cron or at'],
    [{ action: 'create', name: 'x', message: 'y', at: '2020-01-01T00:00:00Z' }, 'in the future'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-30T09:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-30T09:00+01:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-20T09:00+99:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: 'tomorrow' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-03-28T02:30', timezone: 'Europe/Berlin' }, 'never show'],
    [{ action: 'show' }, 'show needs id'],
    [{ action: 'update', id: `s_${'0'.repeat(32)}` }, 'needs something to change'],
    [{ action: 'run', id: `s_${'0'.repeat(32)}` }, 'NOT CONNECTED'],
    [{ action: 'runs' }, 'NOT CONNECTED'],
    [{ action: 'remove', id: '../tenant' }, 'is not the id of a schedule'],
  ])('refuses %j', async (input, reason) => {
    const { call, failures } = box();
    const { output, isError } = await call('cron', input);
    expect(output).toContain(reason);
    expect(isError).toBe(true);
    expect((await scope.schedules.list()).schedules).toEqual([]);
    expect(failures).toEqual([]);
  });

  it('holds to the preview plan', async () => {
    const preview = await tenants.create('small', { plan: 'preview' });
    const { call } = box({}, preview);
    expect((await call('cron', { ...daily, cron: '*/10 * * * *' })).output).toContain('at least 15 minutes apart');
    expect((await call('cron', { ...daily, cron: '*/15 * * * *' })).output).toContain('least distance: 15 minutes');
  });

  it.each<[string, Partial<AcceptedTurn>]>([
    ['a schedule', { origin: 'schedule' }],
    ['a heartbeat', { origin: 'heartbeat' }],
    ['another turn', { origin: 'subagent' }],
    ['another turn, with a grant', { grant: { parentTurnId: 't0', depth: 1, tools: ['cron'] } }],
  ])('makes and changes nothing in a turn that was started by %s', async (_, turn) => {
    const id = idIn((await box().call('cron', daily)).output);
    const { call } = box({ ...turn, turnId: 't2' });
    for (const input of [
      daily,
      { action: 'update', id, name: 'x' },
      { action: 'pause', id },
      { action: 'resume', id },
      { action: 'remove', id },
    ]) {
      expect(await call('cron', input)).toMatchObject({
        isError: true,
        output: expect.stringContaining('cannot make or change schedules'),
      });
    }
    expect((await call('cron', { action: 'show', id })).isError).toBe(false);
    expect(await scope.schedules.find(id)).toMatchObject({ name: 'Report', enabled: true });
  });

  it('tells of a schedule whose file is damaged', async () => {
    const id = idIn((await box().call('cron', daily)).output);
    await writeFile(join(scope.root, 'cron', `${id}.json`), '{');
    expect((await box().call('cron', { action: 'list' })).output).toContain(`${id} cannot be used, its file is damaged`);
    expect((await box().call('cron', { action: 'remove', id })).isError).toBe(false);
    expect(await readdir(join(scope.root, 'cron'))).toEqual([]);
  });
});
