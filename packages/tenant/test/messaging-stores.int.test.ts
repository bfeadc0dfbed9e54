import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { armFailpoints } from '@concierge/runtime';
import { deriveSessionId, type TenantScope, type Tenants } from '../src/index.ts';
import { newSession, startTenants, type TestTenants } from './support.ts';

const telegram = { botToken: '12345:telegram-token', secretToken: 'hook-secret' };
const whatsapp = { phoneNumberId: '106540352242922', accessToken: 'EAAB-token', verifyToken: 'verify-me', appSecret: 'b0a1c2d3' };
const session = '0123456789abcdef0123456789abcdef';
const owner = { kind: 'key', keyId: 'k_1' } as const;
const agent = { kind: 'agent', agent: 'cs', turnId: 't_1' } as const;

let fixture: TestTenants;
let tenants: Tenants;
let scope: TenantScope;
let root: string;

beforeEach(async () => {
  fixture = await startTenants();
  tenants = fixture.tenants;
  scope = await tenants.create('acme');
  root = join(fixture.dataDir, 'tenants', 'acme');
});
afterEach(async () => fixture[Symbol.asyncDispose]());

/** Another process' view of the same tenant. */
async function elsewhere(): Promise<TenantScope> {
  return (await fixture.another()).open('acme');
}

async function readEveryByte(folder: string): Promise<string> {
  const names = await readdir(join(root, folder));
  return (await Promise.all(names.map(async (name) => readFile(join(root, folder, name), 'utf8')))).join('\n');
}

describe('stores that most tenants leave empty', () => {
  it('are seen to be in use as soon as they are, by other processes too', async () => {
    const far = await elsewhere();
    expect(await far.uses('handoffs')).toBe(false);
    await scope.handoffs.request(session, { reason: 'Refund.', by: { kind: 'operator' } });
    expect(await far.uses('handoffs')).toBe(true);
  });
});

describe('channel bindings', () => {
  it('keep what they were given, show which secrets there are, and open them for the adapter', async () => {
    const view = await scope.channels.connect('channel_a', whatsapp);
    expect(view).toMatchObject({
      channel: 'channel_a',
      app: 'whatsapp',
      state: 'enabled',
      identifiers: { phoneNumberId: '106540352242922' },
      secrets: { accessToken: 'set', verifyToken: 'set', appSecret: 'set' },
      lastInboundAt: null,
      lastError: null,
    });
    expect(await scope.channels.open('channel_a')).toEqual(whatsapp);
    expect(await (await elsewhere()).channels.open('channel_a')).toEqual(whatsapp);
    expect(await scope.channels.list()).toEqual([view]);
  });

  it('may contain more than they must', async () => {
    const more = { ...telegram, botUsername: 'shop_bot' };
    expect(await scope.channels.connect('channel_c', more)).toMatchObject({ state: 'enabled', identifiers: { botUsername: 'shop_bot' } });
    expect(await scope.channels.open('channel_c')).toEqual(more);
    expect(await scope.channels.connect('channel_c', { ...telegram, botUsername: undefined })).toMatchObject({
      state: 'enabled',
      identifiers: {},
    });
    expect(await scope.channels.open('channel_c')).toEqual(telegram);
  });

  it('have no secret in clear on disk nor in a view', async () => {
    const view = await scope.channels.connect('channel_a', whatsapp);
    const written = `${await readEveryByte('channels')}${JSON.stringify(view)}`;
    for (const secret of [whatsapp.accessToken, whatsapp.verifyToken, whatsapp.appSecret]) expect(written).not.toContain(secret);
  });

  it.each([
    ['an empty secret', { ...telegram, botToken: '' }],
    ['a missing one', { botToken: 'x' }],
    ['an unknown field', { ...telegram, appSecret: 'x' }],
    ['a secret token Telegram would refuse', { ...telegram, secretToken: 'has space' }],
    ['no object', 'botToken'],
  ])('refuse %s', async (_, settings) => {
    await expect(scope.channels.connect('channel_c', settings)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await scope.channels.list()).toEqual([]);
  });

  it('are replaced whole, and keep when they were first made', async () => {
    const first = await scope.channels.connect('channel_c', telegram);
    await scope.channels.setDisabled('channel_c', 'the token was revoked');
    expect(await scope.channels.open('channel_c')).toBeUndefined();
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'disabled', reason: 'the token was revoked' });
    const second = await scope.channels.connect('channel_c', { ...telegram, botToken: 'new' });
    expect(second).toMatchObject({ state: 'enabled', reason: null, createdAt: first.createdAt });
    expect(await scope.channels.open('channel_c')).toMatchObject({ botToken: 'new' });
  });

  it('keep traffic and errors beside the binding, whose file stays as it is', async () => {
    await scope.channels.connect('channel_c', telegram);
    const before = await readFile(join(root, 'channels', 'channel_c.json'), 'utf8');
    await scope.channels.note('channel_c', 'inbound', new Date('2027-01-01T10:00:00Z'));
    await scope.channels.note('channel_c', 'outbound', new Date('2027-01-01T10:00:05Z'));
    await scope.channels.note('channel_c', 'outbound', new Date('2027-01-01T10:00:06Z'));
    await scope.channels.noteError('channel_c', { code: '401', message: 'The token is not valid.' });
    expect(await scope.channels.find('channel_c')).toMatchObject({
      lastInboundAt: '2027-01-01T10:00:00.000Z',
      lastOutboundAt: '2027-01-01T10:00:06.000Z',
      lastError: { code: '401', message: 'The token is not valid.' },
    });
    expect(await readFile(join(root, 'channels', 'channel_c.json'), 'utf8')).toBe(before);
  });

  it('go with their status when they are disconnected', async () => {
    await scope.channels.connect('channel_c', telegram);
    await scope.channels.note('channel_c', 'inbound');
    await scope.channels.noteError('channel_c', { code: 'x', message: 'y' });
    await scope.channels.disconnect('channel_c');
    expect(await readdir(join(root, 'channels'))).toEqual([]);
    await expect(scope.channels.disconnect('channel_c')).rejects.toMatchObject({ code: 'not_found' });
    await expect(scope.channels.setDisabled('channel_c', 'x')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('report it when another tenant’s file is put in their place: its credentials do not open', async () => {
    await scope.channels.connect('channel_c', telegram);
    const other = await tenants.create('other');
    await writeFile(
      join(fixture.dataDir, 'tenants', 'other', 'channels', 'channel_c.json'),
      await readFile(join(root, 'channels', 'channel_c.json')),
    );
    expect(await other.channels.find('channel_c')).toMatchObject({
      state: 'broken',
      reason: expect.stringContaining('connect it again'),
      secrets: { botToken: 'unreadable', secretToken: 'unreadable' },
    });
    await expect(other.channels.open('channel_c')).rejects.toMatchObject({ code: 'internal_error' });
  });

  it('report it when a file is damaged, and are mended by connecting again', async () => {
    await writeFile(join(root, 'channels', 'channel_d.json'), '{"version":1');
    expect(await scope.channels.find('channel_d')).toMatchObject({ state: 'broken', reason: expect.stringContaining('damaged') });
    await expect(scope.channels.open('channel_d')).rejects.toMatchObject({ code: 'internal_error' });
    await scope.channels.connect('channel_d', { botToken: 'xoxb-1', signingSecret: 's', teamId: 'T1', botUserId: 'U1' });
    expect(await scope.channels.open('channel_d')).toMatchObject({ teamId: 'T1' });
  });

  it('are broken when a field is missing, or when the file is of another channel', async () => {
    await scope.channels.connect('channel_c', telegram);
    const path = join(root, 'channels', 'channel_c.json');
    const whole = await readFile(path, 'utf8');
    await writeFile(path, whole.replace('"secretToken"', '"secretTokens"'));
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'broken' });
    await expect(scope.channels.open('channel_c')).rejects.toMatchObject({ code: 'internal_error' });
    await writeFile(join(root, 'channels', 'channel_d.json'), whole);
    expect(await scope.channels.find('channel_d')).toMatchObject({ state: 'broken', channel: 'channel_d' });
  });

  it('are one whole binding after several processes connected at once', async () => {
    const others = [scope, await elsewhere(), await elsewhere()];
    await Promise.all(
      Array.from({ length: 30 }, async (_, index) =>
        others[index % 3]?.channels.connect('channel_c', { botToken: `token-${String(index)}`, secretToken: `secret-${String(index)}` }),
      ),
    );
    const opened = await scope.channels.open('channel_c');
    expect(opened?.botToken.slice('token-'.length)).toBe(opened?.secretToken.slice('secret-'.length));
    expect((await readdir(join(root, 'channels'))).filter((name) => name.startsWith('.tmp-'))).toEqual([]);
  });
});

describe('schedules', () => {
  const daily = { name: 'Morning report', message: 'Sum up yesterday.', schedule: { cron: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' } };
  const origin = { by: owner, authority: 'admin' } as const;

  it('are kept with what was left out filled in, and shown with their next run', async () => {
    const made = await scope.schedules.create(daily, origin);
    expect(made).toMatchObject({
      ...daily,
      agent: 'admin',
      deliver: null,
      missed: 'run_once',
      overlap: 'skip',
      enabled: true,
      createdBy: owner,
    });
    expect((await (await elsewhere()).schedules.list()).schedules).toEqual([made]);
    const view = scope.schedules.view(made);
    expect(Date.parse(view.nextRunAt ?? '')).toBeGreaterThan(Date.now());
    expect(view).not.toHaveProperty('authority');
  });

  it('are one when the same request comes again, from wherever', async () => {
    const others = [scope, await elsewhere(), await elsewhere()];
    const requestId = 't_1 call_1';
    const made = await Promise.all(others.map(async ({ schedules }) => schedules.create(daily, { ...origin, requestId })));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect((await scope.schedules.list()).schedules).toHaveLength(1);
    const other = await tenants.create('other');
    expect((await other.schedules.create(daily, { ...origin, requestId })).id).not.toBe(made[0]?.id);
  });

  it('change field by field; a pause is no row of missed runs', async () => {
    const { id, countsFrom } = await scope.schedules.create(daily, origin);
    const renamed = await scope.schedules.update(id, { name: 'Report' });
    expect(renamed).toMatchObject({ name: 'Report', schedule: daily.schedule, countsFrom });
    const paused = await scope.schedules.update(id, { enabled: false });
    expect(scope.schedules.view(paused).nextRunAt).toBeNull();
    expect(paused.countsFrom).toBe(countsFrom);
    const resumed = await scope.schedules.update(id, { enabled: true });
    expect(Date.parse(resumed.countsFrom)).toBeGreaterThanOrEqual(Date.parse(paused.updatedAt));
    await scope.schedules.remove(id);
    await expect(scope.schedules.remove(id)).rejects.toMatchObject({ code: 'not_found' });
    await expect(scope.schedules.update(id, { name: 'x' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('are refused with what is wrong', async () => {
    const refused = async (request: object): Promise<unknown> =>
      scope.schedules.create({ ...daily, ...request }, origin).catch((error: unknown) => error);
    expect(await refused({ schedule: { cron: '0 9 * *', timezone: 'UTC' } })).toMatchObject({ errors: [{ path: 'schedule.cron' }] });
    expect(await refused({ schedule: { cron: '0 9 * * *', timezone: 'Mars/Phobos' } })).toMatchObject({ code: 'invalid_request' });
    expect(await refused({ schedule: { cron: '0 9 * * *', timezone: '+02:00' } })).toMatchObject({ code: 'invalid_request' });
    expect(await refused({ agent: 'nobody' })).toMatchObject({ errors: [{ path: 'agent', message: 'there is no agent nobody' }] });
    expect(await refused({ deliver: { channel: 'web', to: 'x' } })).toMatchObject({ code: 'invalid_request' });
    expect(await refused({ deliver: { channel: 'channel_c', to: '@ann' } })).toMatchObject({ errors: [{ path: 'deliver.to' }] });
    expect(await refused({ message: '' })).toMatchObject({ code: 'invalid_request' });
    expect((await scope.schedules.list()).schedules).toEqual([]);
  });

  it('may be for an agent of the tenant’s own', async () => {
    await scope.files.writeText('agents/reporter.md', '---\ndescription: writes reports\n---\n');
    const { id } = await scope.schedules.create({ ...daily, agent: 'reporter' }, origin);
    await scope.files.remove('agents/reporter.md');
    expect(await scope.schedules.update(id, { enabled: false })).toMatchObject({ agent: 'reporter', enabled: false });
    await expect(scope.schedules.update(id, { enabled: true })).rejects.toThrow('there is no agent reporter');
  });

  it('are further apart and fewer on the preview plan', async () => {
    const preview = await tenants.create('small', { plan: 'preview' });
    await expect(preview.schedules.create({ ...daily, schedule: { every: '5m' } }, origin)).rejects.toThrow('15 minutes apart');
    for (let count = 0; count < 10; count += 1) await preview.schedules.create(daily, origin);
    await expect(preview.schedules.create(daily, origin)).rejects.toMatchObject({ code: 'conflict' });
  });

  it('that are damaged are reported beside the others, and leftovers of a crash are swept', async () => {
    const made = await scope.schedules.create(daily, origin);
    const damaged = `s_${'d'.repeat(32)}`;
    const folder = join(root, 'cron');
    await writeFile(join(folder, `${damaged}.json`), '{"version":1,"id"');
    await writeFile(join(folder, `s_${'e'.repeat(32)}.json`), JSON.stringify(made));
    await writeFile(join(folder, 'notes.txt'), 'by hand');
    await writeFile(join(folder, '.tmp-left'), 'half');
    await utimes(join(folder, '.tmp-left'), 1, 1);
    const { schedules, broken } = await scope.schedules.list();
    expect(schedules).toEqual([made]);
    expect(broken.map(({ id }) => id)).toEqual([damaged, `s_${'e'.repeat(32)}`]);
    expect(await scope.schedules.find(damaged)).toBeUndefined();
    expect(await scope.schedules.find('../tenant')).toBeUndefined();
    await scope.sweep();
    expect(await readdir(folder)).not.toContain('.tmp-left');
  });

  it('are whole after several processes changed one at once', async () => {
    const { id } = await scope.schedules.create(daily, origin);
    const others = [scope, await elsewhere(), await elsewhere()];
    const names = Array.from({ length: 30 }, (_, index) => `name ${String(index)}`);
    await Promise.all(names.map(async (name, index) => others[index % 3]?.schedules.update(id, { name, message: `of ${name}` })));
    const found = await scope.schedules.find(id);
    expect(names).toContain(found?.name);
    expect(found?.message).toBe(`of ${String(found?.name)}`);
  });
});

describe('handoffs', () => {
  it('pause a conversation until it is resumed', async () => {
    expect(await scope.handoffs.isPaused(session)).toBe(false);
    const { view, isNew } = await scope.handoffs.request(session, { reason: 'wants a person', by: agent });
    expect(isNew).toBe(true);
    expect(view).toMatchObject({ sessionId: session, state: 'paused', reason: 'wants a person', requestedBy: agent, until: null });
    const other = await elsewhere();
    expect(await other.handoffs.isPaused(session)).toBe(true);
    expect((await other.handoffs.paused()).handoffs).toEqual([view]);
    expect(await other.handoffs.resume(session, owner)).toBe('resumed');
    expect(await scope.handoffs.isPaused(session)).toBe(false);
    expect(await scope.handoffs.find(session)).toMatchObject({ state: 'resumed', resumedBy: owner });
    expect(await scope.handoffs.resume(session, owner)).toBe('not_paused');
    expect((await scope.handoffs.paused()).handoffs).toEqual([]);
  });

  it('stay as they are when they are asked for again, and begin anew after their end', async () => {
    const first = await scope.handoffs.request(session, { reason: 'one', by: agent });
    expect(await scope.handoffs.request(session, { reason: 'two', by: agent })).toEqual({ view: first.view, isNew: false });
    await scope.handoffs.resume(session, owner);
    expect(await scope.handoffs.request(session, { reason: 'three', by: agent })).toMatchObject({ isNew: true, view: { reason: 'three' } });
    expect(await scope.handoffs.isPaused(session)).toBe(true);
  });

  it('are not ended by an end that was meant for an earlier one', async () => {
    await scope.handoffs.request(session, { reason: 'one', by: agent });
    await scope.handoffs.resume(session, owner);
    const late = await readFile(join(root, 'handoffs', `${session}.resumed.json`));
    await scope.handoffs.request(session, { reason: 'two', by: agent });
    await writeFile(join(root, 'handoffs', `${session}.resumed.json`), late);
    expect(await scope.handoffs.isPaused(session)).toBe(true);
  });

  it('end by themselves when they were for a time', async () => {
    const { view } = await scope.handoffs.request(session, { reason: 'lunch', by: owner, hours: 2 });
    expect(Date.parse(view.until ?? '') - Date.parse(view.since)).toBe(7_200_000);
    await expect(scope.handoffs.request(session, { reason: 'x', by: owner, hours: 10_000 })).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });

  it('keep the agent silent while their file cannot be read, until it is resumed', async () => {
    await writeFile(join(root, 'handoffs', `${session}.json`), 'torn');
    expect(await scope.handoffs.isPaused(session)).toBe(true);
    expect(await scope.handoffs.paused()).toEqual({ handoffs: [], broken: [session] });
    expect(await scope.handoffs.resume(session, owner)).toBe('resumed');
    expect(await scope.handoffs.isPaused(session)).toBe(false);
  });
});

describe('the outbox', () => {
  const outbound = {
    kind: 'message',
    channel: 'channel_c',
    to: '4242',
    sessionId: session,
    text: 'Your parcel is here.',
    agent: 'admin',
    turnId: 't_1',
    callId: 'c1',
  } as const;

  it('has on disk what it has accepted, even when the process fails right after', async () => {
    armFailpoints('outbox.after-file:throw');
    await expect(scope.outbox.accept(outbound)).rejects.toThrow('fail point');
    expect(await (await elsewhere()).outbox.accept(outbound)).toMatchObject({ isNew: false, message: outbound });
  });

  it('takes one call once, also when another process repeats it', async () => {
    const others = [scope, await elsewhere(), await elsewhere(), await elsewhere()];
    const accepted = await Promise.all(others.map(async ({ outbox }) => outbox.accept(outbound)));
    expect(accepted.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect(await scope.outbox.waiting()).toHaveLength(1);
    expect((await scope.outbox.accept({ ...outbound, callId: 'c2' })).isNew).toBe(true);
    expect((await scope.outbox.accept({ ...outbound, turnId: 't_2' })).isNew).toBe(true);
    expect((await scope.outbox.waiting()).map(({ turnId, callId }) => `${turnId} ${callId}`)).toEqual(['t_1 c1', 't_1 c2', 't_2 c1']);
  });
});

describe('contacts', () => {
  async function talk(sender: string | null, { channel = 'channel_c', at = '2027-01-01T00:00:00.000Z' } = {}): Promise<string> {
    const name = channel === 'channel_a' ? 'channel_a' : 'channel_c';
    const id = sender === null ? session : deriveSessionId('cs', name, sender);
    const made = newSession(id, { agent: 'cs', channel: name, sender, createdAt: at, updatedAt: at, title: `of ${String(sender)}` });
    await scope.sessions.publish(made);
    await scope.index.putSession(made);
    return id;
  }

  it('are the ones that have written, the last one first, page by page', async () => {
    await talk('ann', { at: '2027-01-01T00:00:00.000Z' });
    await talk('bob', { at: '2027-01-02T00:00:00.000Z' });
    await talk(null, { at: '2027-01-03T00:00:00.000Z' });
    await talk('cid', { at: '2027-01-04T00:00:00.000Z' });
    await talk('bob', { channel: 'channel_a', at: '2027-01-05T00:00:00.000Z' });
    const first = await scope.contacts.list({ limit: 2 });
    expect(first.contacts.map(({ sender }) => sender)).toEqual(['bob', 'cid']);
    const second = await scope.contacts.list({ limit: 2, cursor: first.nextCursor ?? '' });
    expect(second.contacts.map(({ sender }) => sender)).toEqual(['bob', 'ann']);
    expect(await scope.contacts.find('bob')).toMatchObject({
      firstSeenAt: '2027-01-02T00:00:00.000Z',
      lastSeenAt: '2027-01-05T00:00:00.000Z',
      conversations: [{ channel: 'channel_a' }, { channel: 'channel_c' }],
    });
    expect(await scope.contacts.find('nobody')).toBeUndefined();
  });

  it('are found by id, by a part of their name, and by an alias', async () => {
    await talk('4915112345678', { channel: 'channel_a' });
    await scope.contacts.remember({ sender: '4915112345678', displayName: 'Ann  O\u202Ereilly\n' });
    await scope.contacts.addAlias({ channel: 'channel_a', alias: 'DE.abc123', sender: '4915112345678' });
    for (const query of ['4915112345678', 'reilly', '12345', 'DE.abc123']) {
      expect(await scope.contacts.search(query, 5)).toMatchObject([{ sender: '4915112345678', displayName: 'Ann O reilly' }]);
    }
    expect(await scope.contacts.search('zoe', 5)).toEqual([]);
  });

  it('keep a name until there is another', async () => {
    await scope.contacts.remember({ sender: 'ann', displayName: 'Ann' });
    await scope.contacts.remember({ sender: 'ann', displayName: null });
    expect(await scope.contacts.find('ann')).toMatchObject({ displayName: 'Ann', conversations: [] });
  });

  it('have aliases that lead to one contact, of one channel, and never to two', async () => {
    const alias = { channel: 'channel_a', alias: 'DE.abc', sender: '49151' } as const;
    await scope.contacts.addAlias(alias);
    await (await elsewhere()).contacts.addAlias(alias);
    expect(await scope.contacts.findCanonicalSender('channel_a', 'DE.abc')).toBe('49151');
    expect(await scope.contacts.findCanonicalSender('channel_c', 'DE.abc')).toBe('DE.abc');
    expect(await scope.contacts.findCanonicalSender('channel_a', '49151')).toBe('49151');
    await expect(scope.contacts.addAlias({ ...alias, sender: 'somebody else' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(scope.contacts.addAlias({ channel: 'channel_a', alias: '49151', sender: 'x' })).rejects.toMatchObject({
      code: 'conflict',
    });
    await scope.contacts.addAlias({ channel: 'channel_a', alias: 'DE.def', sender: 'DE.abc' });
    expect(await scope.contacts.findCanonicalSender('channel_a', 'DE.def')).toBe('49151');
    await scope.contacts.addAlias({ channel: 'channel_a', alias: '49151', sender: 'DE.def' });
    await scope.contacts.remember({ sender: '49151', displayName: 'Ann' });
    expect((await scope.contacts.find('49151'))?.aliases.map((known) => known.alias)).toEqual(expect.arrayContaining(['DE.abc', 'DE.def']));
  });

  it('lie where no path of the tenant’s leads', async () => {
    await scope.contacts.remember({ sender: 'ann', displayName: 'Ann' });
    for (const folder of ['contacts', 'handoffs', 'outbox', 'cron', 'channels']) {
      await expect(scope.files.readText(`${folder}/x`)).rejects.toMatchObject({ code: 'not_found' });
      await expect(scope.files.writeText(`${folder}/x`, 'x')).rejects.toMatchObject({ code: expect.any(String) });
    }
    expect((await scope.files.list('', { recursive: true, limit: 1000 })).map(({ path }) => path.split('/')[0])).not.toContain('outbox');
  });
});
