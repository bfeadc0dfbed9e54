import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { deriveSessionId } from '@concierge/tenant';
import { botError, eventually, gate, say, until } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { appSettings, TestChannels, messengerText, telegramMention, telegramText, telegramUpdate, whatsAppText } from './test-channels.ts';
import { numbered, numbersIn } from './numbered.ts';

const TurnList = z.array(z.object({ id: z.string(), status: z.string(), joinedTo: z.string().optional() }));

let fixture: TestChannels;

setUpOnce(async (stack) => {
  fixture = stack.use(await TestChannels.start({ gateways: 2, workers: 2 }));
});

describe('a message on a channel', () => {
  it('is answered on WhatsApp, in its markup, while the contact sees a typing indicator', async () => {
    const answer = holdAnswer(/whatsapp one/u, 'We open at **9**.');
    await fixture.tenantOn('shop-whatsapp', 'whatsapp');
    const { verifyToken } = appSettings.whatsapp;
    await fixture.meta.register({ url: fixture.webhookUrl('whatsapp', 'shop-whatsapp'), verifyToken });
    fixture.meta.personWrites('4915112345678');
    await fixture.meta.deliver(whatsAppText({ from: '4915112345678', id: 'wamid.one', body: 'whatsapp one: when do you open?' }));
    await eventually(() => fixture.meta.calls.some(({ body }) => body['typing_indicator'] !== undefined));
    answer.open();
    const [sent] = await eventually(() => sentOrNothing(fixture.meta.sent));
    expect(sent).toMatchObject({ to: '4915112345678', type: 'text', text: { body: 'We open at *9*.' } });
  });

  it('is answered on Messenger', async () => {
    const answer = holdAnswer(/messenger one/u, 'Hello there.');
    await fixture.tenantOn('shop-messenger', 'messenger');
    const before = fixture.meta.sent.length;
    const { verifyToken } = appSettings.messenger;
    await fixture.meta.register({ url: fixture.webhookUrl('messenger', 'shop-messenger'), verifyToken });
    fixture.meta.personWrites('24680');
    await fixture.meta.deliver(messengerText({ from: '24680', id: 'mid.one', text: 'messenger one' }));
    await eventually(() => fixture.meta.calls.some(({ body }) => body['sender_action'] === 'typing_on'));
    answer.open();
    const [sent] = await eventually(() => sentOrNothing(fixture.meta.sent.slice(before)));
    expect(sent).toMatchObject({ recipient: { id: '24680' }, message: { text: 'Hello there.' } });
  });

  it('is gone from its conversation once its sender has taken it back', async () => {
    await fixture.tenantOn('taken-back', 'messenger');
    const { verifyToken } = appSettings.messenger;
    await fixture.meta.register({ url: fixture.webhookUrl('messenger', 'taken-back'), verifyToken });
    const said = { from: '13579', id: 'mid.secret', text: `${numbered(13)}, and my card is 4111 1111` };
    fixture.meta.personWrites(said.from);
    await fixture.meta.deliver(messengerText(said));
    await ended('taken-back');
    await fixture.meta.deliver(messengerText({ ...said, deleted: true }));
    const turns = await ended('taken-back', 2);
    const scope = await fixture.system.scope('taken-back');
    const session = await scope.sessions.load(deriveSessionId('cs', 'channel_b', said.from));
    expect(session?.messages).toMatchObject([
      { role: 'user', text: '[The sender took this message back.]' },
      { role: 'assistant', text: 'heard 13' },
    ]);
    expect(JSON.stringify(session)).not.toContain('4111 1111');
    expect(turns).toHaveLength(2);
  });

  it('is answered on Telegram', async () => {
    const answer = holdAnswer(/telegram one/u, 'Yes, **we do**.');
    await fixture.tenantOn('shop-telegram', 'telegram');
    await registerTelegram('shop-telegram');
    await fixture.telegram.deliver(55, telegramText({ from: 55, id: 1, text: 'telegram one: do you ship?' }));
    await eventually(() => fixture.telegram.callsTo('/sendChatAction').length > 0);
    answer.open();
    const [sent] = await eventually(() => sentOrNothing(fixture.telegram.sent));
    expect(sent).toMatchObject({ chat_id: 55, text: 'Yes, <b>we do</b>.', parse_mode: 'HTML' });
  });

  it('is answered in a group and in a topic of Telegram, as an answer to itself', async () => {
    fixture.model.when(/group one/u, [say('In the group.')]);
    fixture.model.when(/topic one/u, [say('In the topic.')]);
    await fixture.tenantOn('shop-group', 'telegram');
    await registerTelegram('shop-group');
    const group = { id: -1_001_000_001, type: 'supergroup', title: 'Shop' };
    await fixture.telegram.deliver(group.id, telegramMention({ chat: group, id: 21, text: 'group one?' }));
    const forum = { id: -1_001_000_002, type: 'supergroup', title: 'Forum', is_forum: true };
    const topic = { message_thread_id: 7, is_topic_message: true };
    await fixture.telegram.deliver(forum.id, telegramMention({ chat: forum, id: 22, text: 'topic one?', ...topic }));
    const sentIn = (chat: number) => fixture.telegram.sent.filter((call) => call['chat_id'] === chat);
    const [inGroup] = await eventually(() => sentOrNothing(sentIn(group.id)));
    const [inTopic] = await eventually(() => sentOrNothing(sentIn(forum.id)));
    expect(inGroup).toMatchObject({ text: 'In the group.', reply_parameters: { message_id: 21 } });
    expect(inTopic).toMatchObject({ text: 'In the topic.', message_thread_id: 7, reply_parameters: { message_id: 22 } });
    const scope = await fixture.system.scope('shop-group');
    await eventually(async () => (await scope.outbox.lanes()).length === 0);
    expect(await scope.outbox.dead()).toEqual([]);
  });

  it('is taken while its app lets nothing be sent, and answered when it does again', async () => {
    fixture.model.when(/at three in the morning/u, [say('Good morning.')]);
    const owner = await fixture.tenantOn('no-sending', 'telegram');
    await registerTelegram('no-sending');
    fixture.telegram.failSends(botError(401, 'Unauthorized'));
    await fixture.telegram.deliver(901, telegramText({ from: 901, id: 901, text: numbered(901) }));
    const scope = await fixture.system.scope('no-sending');
    await eventually(async () => (await scope.channels.find('channel_c'))?.state === 'receive_only');
    const tries = await fixture.telegram.deliver(902, telegramText({ from: 902, id: 902, text: 'at three in the morning' }));
    expect(tries.map(({ status }) => status)).toEqual([200]);
    await eventually(async () => (await scope.outbox.lanes()).length === 2);
    await owner.request('/api/channels/telegram', { method: 'PUT', body: appSettings.telegram });
    const textsIn = (chat: number) => fixture.telegram.sent.filter((call) => call['chat_id'] === chat).map(({ text }) => text);
    await eventually(() => textsIn(902).length > 0 && textsIn(901).length > 1);
    expect([textsIn(901), textsIn(902)]).toEqual([['heard 901', 'heard 901'], ['Good morning.']]);
  });

  it('is answered in its thread on Slack, once for a mention that comes as two events, and never to itself', async () => {
    fixture.model.when(/slack one/u, [say('At *noon*.')]);
    await fixture.tenantOn('shop-slack', 'slack');
    await fixture.slack.register(fixture.webhookUrl('slack', 'shop-slack'));
    const { botUserId } = appSettings.slack;
    await fixture.slack.deliverMention({
      channel: 'C0SHOP',
      user: 'U0ANN',
      text: `<@${botUserId}> slack one: when?`,
      ts: '1700000100.000200',
    });
    const [sent] = await eventually(() => sentOrNothing(fixture.slack.sent));
    expect(sent).toMatchObject({ channel: 'C0SHOP', text: 'At _noon_.' });
    const turns = await ended('shop-slack');
    expect(turns).toHaveLength(1);
  });
});

describe('redelivery and bursts', () => {
  it('answers a message once that is brought twenty times at once, over a gateway that dies and comes back', async () => {
    await fixture.tenantOn('redelivery', 'whatsapp');
    const before = fixture.meta.sent.length;
    const from = '4915100000001';
    fixture.meta.personWrites(from);
    const payload = whatsAppText({ from, id: `wamid.${randomBytes(4).toString('hex')}`, body: numbered(1) });
    const { verifyToken } = appSettings.whatsapp;
    await fixture.meta.register({ url: fixture.webhookUrl('whatsapp', 'redelivery'), verifyToken });
    // A gateway takes longer to start on a busy machine than the first of them together.
    const retryDelaysMs = [200, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000, 32_000];
    const deliveries = Array.from({ length: 20 }, async () => fixture.meta.deliver(payload, { retryDelaysMs }));
    const [gateway] = fixture.system.gateways;
    await gateway?.kill();
    gateway?.start();
    const tries = await Promise.all(deliveries);
    expect(tries.map((one) => one.at(-1)?.status)).toEqual(tries.map(() => 200));
    await eventually(() => sentOrNothing(fixture.meta.sent.slice(before)));
    await fixture.meta.deliver(payload, { retryDelaysMs });
    expect(await ended('redelivery')).toHaveLength(1);
    expect(textsTo(from, before)).toEqual(['heard 1']);
  });

  it('gives one good answer to five quick messages', async () => {
    await fixture.tenantOn('quick', 'telegram');
    await waitLongForMore('quick');
    await registerTelegram('quick');
    for (const number of [1, 2, 3, 4, 5])
      await fixture.telegram.deliver(77, telegramText({ from: 77, id: 700 + number, text: numbered(number) }));
    const answers = () => fixture.telegram.sent.filter((call) => call['chat_id'] === 77).map((call) => String(call['text']));
    await eventually(() => answers().length > 0);
    const turns = await ended('quick', 5);
    expect(answers()).toEqual(['heard 1 2 3 4 5']);
    expect(turns).toHaveLength(5);
    expect(turns.filter(({ joinedTo }) => joinedTo === undefined)).toHaveLength(1);
  });

  it('gives one answer to an album and the question that follows it', async () => {
    fixture.model.when(/what is this/u, [say('Three pictures.')]);
    await fixture.tenantOn('album', 'telegram');
    await waitLongForMore('album');
    await registerTelegram('album');
    const photo = [{ file_id: 'none', file_unique_id: 'none', width: 90, height: 60 }];
    for (const id of [801, 802, 803]) await fixture.telegram.deliver(78, telegramUpdate({ from: 78, id, photo, media_group_id: '131' }));
    await fixture.telegram.deliver(78, telegramText({ from: 78, id: 804, text: 'what is this?' }));
    const answers = () => fixture.telegram.sent.filter((call) => call['chat_id'] === 78).map(({ text }) => text);
    await eventually(() => answers().length > 0);
    const turns = await ended('album', 4);
    expect(answers()).toEqual(['Three pictures.']);
    expect(turns.filter(({ joinedTo }) => joinedTo === undefined)).toHaveLength(1);
  });

  it('accepts 2,000 messages of 200 contacts at once, and answers each contact in order, nothing left out and nothing twice', async () => {
    await fixture.tenantOn('burst', 'whatsapp');
    const { verifyToken } = appSettings.whatsapp;
    await fixture.meta.register({ url: fixture.webhookUrl('whatsapp', 'burst', 1), verifyToken });
    const before = fixture.meta.sent.length;
    const people = Array.from({ length: 200 }, (_, index) => `49160${String(index).padStart(7, '0')}`);
    const statuses = await Promise.all(
      people.map(async (from) => {
        fixture.meta.personWrites(from);
        const answered: number[] = [];
        for (let number = 1; number <= 10; number += 1) {
          const text = whatsAppText({ from, id: `wamid.${from}.${String(number)}`, body: numbered(number) });
          // A process that stands still is no refusal.
          const tries = await fixture.meta.deliver(text, { timeoutMs: 120_000 });
          answered.push(...tries.map(({ status }) => status));
        }
        return answered;
      }),
    );
    expect(statuses.flat().filter((status) => status !== 200)).toEqual([]);
    const heardBy = (from: string): number[] => textsTo(from, before).flatMap((text) => numbersIn(text));
    await eventually(() => people.every((from) => heardBy(from).length >= 10), { timeoutMs: 150_000, everyMs: 250 });
    const wrong = people.filter((from) => heardBy(from).join(' ') !== '1 2 3 4 5 6 7 8 9 10');
    expect(wrong.map((from) => [from, heardBy(from)])).toEqual([]);
    expect(await ended('burst', 2000)).toHaveLength(2000);
  });
});

/** The model waits with its answer until this is opened: an indicator ends, perhaps unseen, with its turn. */
function holdAnswer(question: RegExp, text: string): ReturnType<typeof gate<void>> {
  const goOn = gate();
  fixture.model.when(question, [until(goOn.opened), say(text)]);
  return goOn;
}

/** undefined while there is nothing. */
function sentOrNothing(sent: readonly Readonly<Record<string, unknown>>[]): readonly Readonly<Record<string, unknown>>[] | undefined {
  return sent.length > 0 ? sent : undefined;
}

function textsTo(person: string, from: number): string[] {
  const toPerson = fixture.meta.sent.slice(from).filter(({ to }) => to === person);
  return toPerson.map(({ text }) => z.object({ body: z.string() }).parse(text).body);
}

/** The turns of a tenant once none is on its way. */
async function ended(tenantId: string, atLeast = 1): Promise<z.infer<typeof TurnList>> {
  const scope = await fixture.system.scope(tenantId);
  await eventually(async () => (await scope.inbox.turnIds()).length === 0, { everyMs: 100 });
  // A turn's end waits two seconds for the index, and no longer: it may be behind.
  return await eventually(
    async () => {
      const turns = await listTurns(tenantId);
      expect(turns.length).toBeGreaterThanOrEqual(atLeast);
      return turns;
    },
    { everyMs: 250 },
  );
}

async function listTurns(tenantId: string): Promise<z.infer<typeof TurnList>> {
  const { index } = await fixture.system.scope(tenantId);
  const turns: z.infer<typeof TurnList> = [];
  let cursor: string | undefined;
  do {
    const page = await index.listTurns({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    turns.push(...page.items.map(({ id, status, joinedTo }) => ({ id, status, joinedTo })));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return turns;
}

/** What is quick for a person is not for a busy machine, which delivers after a conversation has waited for more. */
async function waitLongForMore(tenantId: string): Promise<void> {
  const scope = await fixture.system.scope(tenantId);
  await scope.updateSettings({ channels: { telegram: { debounceMs: 15_000 } } });
}

async function registerTelegram(tenantId: string): Promise<void> {
  const { botToken, secretToken } = appSettings.telegram;
  const body = JSON.stringify({ url: fixture.webhookUrl('telegram', tenantId), secret_token: secretToken });
  await fetch(`${fixture.telegram.url}/bot${botToken}/setWebhook`, { method: 'POST', body });
}
