import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Problem, type AcceptedTurn } from '@concierge/contract';
import { deriveSessionId } from '@concierge/tenant';
import { eventually, FakeTelegram } from '@concierge/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { providerUrls } from '@concierge/channel';
import { postTelegram, postWhatsApp, telegram, whatsApp, whatsAppBody, type WhatsAppText } from './channels.ts';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let bot: FakeTelegram;
let tenant: TestTenant;

beforeAll(async () => {
  bot = await new FakeTelegram({ botToken: telegram.botToken }).start();
  gateway = await TestGateway.start({ providerUrls: { ...providerUrls, telegram: bot.url } });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await bot[Symbol.asyncDispose]();
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
  await tenant.scope.channels.connect('channel_a', whatsApp);
  await tenant.scope.channels.connect('channel_c', telegram);
  await tenant.scope.updateSettings({ channels: { whatsapp: { debounceMs: 0 }, telegram: { debounceMs: 0 } } });
});

async function write(...texts: WhatsAppText[]): Promise<Response> {
  return postWhatsApp(gateway, tenant.id, { body: whatsAppBody(texts) });
}

/** Messages of a channel's contacts, as the conversation of one of them holds them. */
async function saidBy(sender: string, channel: 'channel_a' | 'channel_c' = 'channel_a'): Promise<string[]> {
  const session = await tenant.scope.sessions.load(deriveSessionId('cs', channel, sender));
  return (session?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));
}

async function answered(sender: string, count: number, channel: 'channel_a' | 'channel_c' = 'channel_a'): Promise<string[]> {
  return eventually(async () => {
    const said = await saidBy(sender, channel);
    return said.length >= count ? said : undefined;
  });
}

async function accepted(): Promise<AcceptedTurn[]> {
  const turns = await Promise.all((await tenant.scope.inbox.turnIds()).map(async (turnId) => tenant.scope.inbox.read(turnId)));
  return turns.filter((turn) => turn !== undefined);
}

async function counted(kind: string, reason: string): Promise<number> {
  const text = await (await gateway.ask(undefined, '/metrics')).text();
  // Operators see numbers without the tenants they belong to.
  expect(text).not.toContain(tenant.id);
  const lines = text.split('\n').filter((line) => line.startsWith('concierge_inbound_items_total{'));
  const found = lines.find((line) => line.includes(`kind="${kind}"`) && line.includes(`reason="${reason}"`));
  return Number(found?.split(' ').at(-1) ?? 0);
}

/** All parts of an answer that could distinguish two tenants. */
async function shown(response: Response): Promise<object> {
  const { requestId: _requestId, ...problem } = Problem.parse(await response.json());
  const headers = [...response.headers].filter(([name]) => !['x-request-id', 'date'].includes(name));
  return { status: response.status, headers, problem };
}

describe('a message', () => {
  it('that is delivered twenty times at once is answered once', async () => {
    const body = whatsAppBody([{ from: '491510000001', text: 'Are you open?' }]);
    const answers = await Promise.all(Array.from({ length: 20 }, async () => postWhatsApp(gateway, tenant.id, { body })));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(await answered('491510000001', 1)).toEqual(['Are you open?']);
    await eventually(async () => (await accepted()).length === 0);
    expect((await postWhatsApp(gateway, tenant.id, { body })).status).toBe(200);
    expect(await accepted()).toEqual([]);
    expect(await saidBy('491510000001')).toEqual(['Are you open?']);
  });

  it('that was answered is known when Redis has lost everything', async () => {
    const body = whatsAppBody([{ from: '491510000001', text: 'Are you open?' }]);
    await postWhatsApp(gateway, tenant.id, { body });
    await answered('491510000001', 1);
    await eventually(async () => (await accepted()).length === 0);
    await gateway.redis.flush();
    expect((await postWhatsApp(gateway, tenant.id, { body })).status).toBe(200);
    expect(await accepted()).toEqual([]);
  });

  it('of one sender follows the one before, also in one delivery', async () => {
    const lines = Array.from({ length: 20 }, (_, number) => `line ${String(number)}`);
    await write(...lines.map((text, at) => ({ from: at % 2 === 0 ? '491510000001' : '491510000002', text })));
    expect(await answered('491510000001', 10)).toEqual(lines.filter((_, at) => at % 2 === 0));
    expect(await answered('491510000002', 10)).toEqual(lines.filter((_, at) => at % 2 === 1));
  });

  it('is waited for as tenant.json sets it, under either name of its channel', async () => {
    gateway.holdTurns();
    await tenant.scope.updateSettings({ channels: { channel_a: { busy: 'reject' } } });
    const before = await counted('message', 'busy');
    expect((await write({ from: '1', text: 'first' })).status).toBe(200);
    expect((await write({ from: '1', text: 'second' })).status).toBe(200);
    expect((await accepted()).map(({ text }) => text)).toEqual(['first']);
    expect(await counted('message', 'busy')).toBe(before + 1);
    await tenant.scope.updateSettings({ channels: { channel_a: null, whatsapp: { busy: 'queue' } } });
    await write({ from: '1', text: 'third' });
    await tenant.scope.updateSettings({ channels: null });
    await write({ from: '1', text: 'fourth' });
    const collecting = new Map((await accepted()).map(({ text, collects }) => [text, collects]));
    expect(collecting).toEqual(
      new Map([
        ['first', undefined],
        ['third', undefined],
        ['fourth', true],
      ]),
    );
  });

  it('beyond those that may wait is acknowledged and dropped, and the owner sees it', async () => {
    gateway.holdTurns();
    await tenant.scope.updateSettings({ channels: { whatsapp: { busy: 'queue' } } });
    const texts = Array.from({ length: 60 }, (_, number) => ({ from: '1', text: String(number) }));
    expect((await write(...texts)).status).toBe(200);
    expect((await accepted()).length).toBeLessThan(60);
    const error = await eventually(async () => (await tenant.scope.channels.find('channel_a'))?.lastError ?? undefined);
    expect(error.code).toBe('too_many_waiting');
  });

  it('of a suspended tenant is accepted and waits', async () => {
    gateway.holdTurns();
    await gateway.tenants.setSuspended(tenant.id, true);
    expect((await write({ from: '1', text: 'hello' })).status).toBe(200);
    expect((await accepted()).map(({ text }) => text)).toEqual(['hello']);
  });

  it('records a sender’s display name, and when the channel was last active', async () => {
    await write({ from: '491510000001', text: 'hello', name: 'Ada\u0007 Lovelace' });
    const name = await eventually(async () => (await tenant.scope.contacts.find('491510000001'))?.displayName ?? undefined);
    expect(name).toBe('Ada Lovelace');
    expect(await eventually(async () => (await tenant.scope.channels.find('channel_a'))?.lastInboundAt ?? undefined)).toMatch(/^20/u);
  });

  it('with ids that no file of ours may hold is acknowledged and counted', async () => {
    const before = await counted('message', 'unreadable');
    const from = { id: 1, is_bot: false, first_name: 'A' };
    const update = {
      update_id: 1,
      message: { message_id: 1, date: 1, chat: { id: 'x'.repeat(300), type: 'private' }, from, text: 'hello' },
    };
    expect((await postTelegram(gateway, tenant.id, update)).status).toBe(200);
    expect(await counted('message', 'unreadable')).toBe(before + 1);
  });

  it('larger than any that a channel lets people send is acknowledged and kept nowhere', async () => {
    gateway.holdTurns();
    const before = await counted('message', 'unreadable');
    const long = 'x'.repeat(300_000);
    const say = (update_id: number, more: object): object => ({
      update_id,
      message: {
        message_id: update_id,
        date: 1,
        chat: { id: 1, type: 'private' },
        from: { id: 1, is_bot: false, first_name: 'A' },
        ...more,
      },
    });
    const inGroup = { chat: { id: -1, type: 'group' }, text: '@shop_bot hi', entities: [{ type: 'mention', offset: 0, length: 9 }] };
    const updates = [
      say(1, { ...inGroup, from: { id: long, is_bot: false, first_name: 'A' } }),
      say(2, { text: 'hello', document: { file_id: 'f', file_name: long } }),
      say(3, { contact: { phone_number: '1', first_name: long } }),
      say(4, { chat: { id: 1, type: 'private' }, migrate_to_chat_id: long }),
    ];
    for (const update of updates) expect((await postTelegram(gateway, tenant.id, update)).status).toBe(200);
    expect(await accepted()).toEqual([]);
    expect(await counted('message', 'unreadable')).toBe(before + 3);
  });

  it('that cannot be written down is not acknowledged, and is there after it came again', async () => {
    gateway.holdTurns();
    const body = whatsAppBody([
      { from: '1', text: 'one' },
      { from: '2', text: 'two' },
    ]);
    await write({ from: '3', text: 'three' });
    const inbox = join(tenant.scope.root, 'inbox');
    await rename(inbox, `${inbox}.away`);
    await writeFile(inbox, '');
    const refused = await postWhatsApp(gateway, tenant.id, { body });
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await rm(inbox);
    await rename(`${inbox}.away`, inbox);
    expect((await postWhatsApp(gateway, tenant.id, { body })).status).toBe(200);
    expect((await accepted()).map(({ text }) => text).toSorted()).toEqual(['one', 'three', 'two']);
  });
});

describe('a message that its sender takes back', () => {
  const revokeBody = (original: string): string => {
    const revoke = {
      from: '1',
      id: `revoke.${original}`,
      timestamp: '1760000000',
      type: 'revoke',
      revoke: { original_message_id: original },
    };
    const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: whatsApp.phoneNumberId }, messages: [revoke] };
    return JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] });
  };
  const takeBack = async (original: string): Promise<number> =>
    (await postWhatsApp(gateway, tenant.id, { body: revokeBody(original) })).status;

  it('is taken back once, behind what runs in its conversation, and not answered while it waits', async () => {
    gateway.holdTurns();
    await write({ from: '1', text: 'first', id: 'wamid.first' });
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length === 1);
    await write({ from: '1', text: 'my card number', id: 'wamid.second' });
    const before = await accepted();
    const second = before.find(({ text }) => text === 'my card number');
    expect([await takeBack('wamid.second'), await takeBack('wamid.second')]).toEqual([200, 200]);
    const retractions = (await accepted()).filter(({ origin }) => origin === 'retraction');
    expect(retractions).toMatchObject([{ retracts: second?.turnId, sessionId: second?.sessionId, text: '' }]);
    expect(await tenant.scope.inbox.isCancelled(second?.turnId ?? '')).toBe(true);
    expect(await counted('retraction', 'accepted')).toBeGreaterThan(0);
  });

  it('is nothing to be done about where it never came', async () => {
    expect(await takeBack('wamid.never')).toBe(200);
    expect(await accepted()).toEqual([]);
    expect(await counted('retraction', 'unknown')).toBeGreaterThan(0);
  });
});

describe('a binding', () => {
  it('is not revealed to callers', async () => {
    const other = await gateway.tenant();
    const disabled = await gateway.tenant();
    await disabled.scope.channels.connect('channel_a', whatsApp);
    await disabled.scope.channels.setDisabled('channel_a', 'paused');
    const broken = await gateway.tenant();
    await broken.scope.channels.connect('channel_a', whatsApp);
    await writeFile(join(broken.scope.root, 'channels', 'channel_a.json'), '{');
    const body = whatsAppBody([{ from: '1', text: 'hello' }]);
    const unsigned = await shown(await postWhatsApp(gateway, tenant.id, { body, appSecret: 'another-secret' }));
    expect(unsigned).toMatchObject({ status: 401, problem: { code: 'invalid_signature' } });
    for (const id of [other.id, disabled.id, broken.id, 'nobody', 'NOT-AN-ID']) {
      expect(await shown(await postWhatsApp(gateway, id, { body }))).toEqual(unsigned);
    }
  });

  it('that is changed or disconnected is so for the next delivery', async () => {
    gateway.holdTurns();
    expect((await write({ from: '1', text: 'a' })).status).toBe(200);
    await tenant.scope.channels.connect('channel_a', { ...whatsApp, appSecret: 'rotated' });
    expect((await write({ from: '1', text: 'b' })).status).toBe(401);
    expect((await postWhatsApp(gateway, tenant.id, { body: whatsAppBody([{ from: '1', text: 'c' }]), appSecret: 'rotated' })).status).toBe(
      200,
    );
    await tenant.scope.channels.disconnect('channel_a');
    expect((await postWhatsApp(gateway, tenant.id, { body: whatsAppBody([{ from: '1', text: 'd' }]), appSecret: 'rotated' })).status).toBe(
      401,
    );
    expect((await accepted()).map(({ text }) => text).toSorted()).toEqual(['a', 'c']);
  });

  it('gets nothing of another one that the same app signs for', async () => {
    const before = await counted('ignored', 'foreign');
    const body = whatsAppBody([{ from: '1', text: 'for somebody else' }], '999');
    expect((await postWhatsApp(gateway, tenant.id, { body })).status).toBe(200);
    expect(await accepted()).toEqual([]);
    expect(await counted('ignored', 'foreign')).toBe(before + 1);
  });

  it('of one tenant takes the same message as that of another, each for itself', async () => {
    const other = await gateway.tenant();
    await other.scope.channels.connect('channel_a', whatsApp);
    const body = whatsAppBody([{ from: '491510000001', text: 'hello' }]);
    expect((await postWhatsApp(gateway, tenant.id, { body })).status).toBe(200);
    expect((await postWhatsApp(gateway, other.id, { body })).status).toBe(200);
    expect(await answered('491510000001', 1)).toEqual(['hello']);
    const id = deriveSessionId('cs', 'channel_a', '491510000001');
    expect(await eventually(async () => other.scope.sessions.load(id))).toMatchObject({ sender: '491510000001' });
  });
});

describe('a sender with several ids', () => {
  it('goes on in the conversation that is there', async () => {
    await write({ from: '491510000001', text: 'by number' });
    await answered('491510000001', 1);
    await write({ from: '491510000001', userId: 'DE.123', text: 'by name' });
    expect(await answered('491510000001', 2)).toEqual(['by number', 'by name']);
    expect(await saidBy('DE.123')).toEqual([]);
  });

  it('is kept under the newer id when there was no message before', async () => {
    await write({ from: '491510000002', userId: 'DE.456', text: 'first' });
    await answered('DE.456', 1);
    // From an older webhook version, which contains the number alone.
    await write({ from: '491510000002', text: 'second' });
    expect(await answered('DE.456', 2)).toEqual(['first', 'second']);
  });

  it('with another number stays the same', async () => {
    await write({ from: '491510000003', text: 'old number' });
    await answered('491510000003', 1);
    const system = { type: 'user_changed_number', wa_id: '491510000004', body: 'changed' };
    const message = { from: '491510000003', id: 'wamid.moved', timestamp: '1760000001', type: 'system', system };
    const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: whatsApp.phoneNumberId }, messages: [message] };
    const body = { object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] };
    expect((await postWhatsApp(gateway, tenant.id, { body: JSON.stringify(body) })).status).toBe(200);
    await write({ from: '491510000004', text: 'new number' });
    expect(await answered('491510000003', 2)).toEqual(['old number', 'new number']);
  });
});

describe('a group', () => {
  const ada = { id: 11, is_bot: false, first_name: 'Ada' };
  const say = (id: number, text: string, chat: object): object => ({
    update_id: id,
    message: { message_id: id, date: 1_760_000_000, from: ada, chat, text, entities: [{ type: 'mention', offset: 0, length: 9 }] },
  });
  const group = { id: -100, type: 'group', title: 'Shop' };

  it('has a separate conversation with each sender', async () => {
    await postTelegram(gateway, tenant.id, say(1, '@shop_bot in the group', group));
    await postTelegram(gateway, tenant.id, say(2, 'in private', { id: 11, type: 'private' }));
    expect(await answered('-100:11', 1, 'channel_c')).toHaveLength(1);
    expect(await answered('11', 1, 'channel_c')).toEqual(['in private']);
  });

  it('that has moved goes on', async () => {
    await postTelegram(gateway, tenant.id, say(1, '@shop_bot before', group));
    await answered('-100:11', 1, 'channel_c');
    const moved = { message_id: 2, date: 1_760_000_001, from: ada, chat: group, migrate_to_chat_id: -100_200 };
    expect((await postTelegram(gateway, tenant.id, { update_id: 2, message: moved })).status).toBe(200);
    await postTelegram(gateway, tenant.id, say(3, '@shop_bot after', { id: -100_200, type: 'supergroup', title: 'Shop' }));
    expect(await answered('-100:11', 2, 'channel_c')).toHaveLength(2);
  });
});

describe('a receipt', () => {
  it('moves what was sent on to where the sender has it', async () => {
    const { outbox } = tenant.scope;
    const sent = { channel: 'channel_a', to: '4915', sessionId: 'f'.repeat(32), text: 'Yes.', agent: 'cs', turnId: 't_1' } as const;
    const { id } = (await outbox.accept({ ...sent, kind: 'message', callId: 'c1' })).message;
    const at = new Date().toISOString();
    await outbox.record(id, [{ kind: 'parts', at, parts: [{ text: 'Yes.', plain: 'Yes.' }] }]);
    await outbox.record(id, [{ kind: 'result', at, part: 0, try: 1, outcome: 'sent', providerMessageId: 'wamid.ours' }]);
    const statuses = [{ id: 'wamid.ours', status: 'read', timestamp: '1760000000', recipient_id: '4915' }];
    const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: whatsApp.phoneNumberId }, statuses };
    const body = { object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] };
    expect((await postWhatsApp(gateway, tenant.id, { body: JSON.stringify(body) })).status).toBe(200);
    expect((await outbox.delivery(id))?.state).toBe('read');
  });
});

describe('a pressed button', () => {
  it('is acknowledged to the provider', async () => {
    const from = { id: 11, is_bot: false, first_name: 'Ada' };
    const message = {
      message_id: 5,
      date: 1,
      chat: { id: 11, type: 'private' },
      from: { id: 7_000_000_001, is_bot: true, first_name: 'Bot' },
    };
    const update = { update_id: 9, callback_query: { id: 'callback-1', from, message, data: 'yes', chat_instance: '1' } };
    expect((await postTelegram(gateway, tenant.id, update)).status).toBe(200);
    const [call] = await eventually(() => {
      const calls = bot.callsTo('/answerCallbackQuery');
      return calls.length > 0 ? calls : undefined;
    });
    expect(call?.body).toEqual({ callback_query_id: 'callback-1' });
  });

  it('that blocks the bot is remembered, until it lets it in again', async () => {
    const member = (status: string, updateId: number) => ({
      update_id: updateId,
      my_chat_member: {
        chat: { id: 12, type: 'private' },
        from: { id: 12, is_bot: false },
        date: 1,
        old_chat_member: { status: 'member' },
        new_chat_member: { status },
      },
    });
    expect((await postTelegram(gateway, tenant.id, member('kicked', 21))).status).toBe(200);
    expect(await tenant.scope.contacts.unreachableSince('channel_c', '12')).toMatch(/^20/u);
    expect((await postTelegram(gateway, tenant.id, member('member', 22))).status).toBe(200);
    expect(await tenant.scope.contacts.unreachableSince('channel_c', '12')).toBeUndefined();
  });

  it('that sends an album waits for all of its pictures', async () => {
    gateway.holdTurns();
    const picture = (id: number) => ({
      update_id: id,
      message: {
        message_id: id,
        media_group_id: '131',
        from: { id: 13, is_bot: false, first_name: 'Ann' },
        chat: { id: 13, type: 'private' },
        date: 1,
        photo: [{ file_id: `p${String(id)}`, width: 1, height: 1 }],
      },
    });
    for (const id of [31, 32, 33]) expect((await postTelegram(gateway, tenant.id, picture(id))).status).toBe(200);
    const turns = await accepted();
    expect(turns.map(({ collects, channelMessage }) => [collects, channelMessage?.albumId])).toEqual(turns.map(() => [true, '131']));
    expect(turns).toHaveLength(3);
  });
});
