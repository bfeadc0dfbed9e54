import { providerUrls } from '@concierge/channel';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ChannelTest, ConnectedChannel, Problem } from '@concierge/contract';
import { FakeMeta, FakeSlack, FakeTelegram, freePort, serveRequests } from '@concierge/testing';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const publicUrl = 'https://chat.example.com/concierge';
const whatsapp = { phoneNumberId: '1065', accessToken: 'EAAB-whatsapp-token', verifyToken: 'verify-me', appSecret: 'b0a1-app-secret' };
const messenger = { pageId: '4042', accessToken: 'EAAB-whatsapp-token', verifyToken: 'verify-me', appSecret: 'b0a1-app-secret' };
const telegram = { botToken: '7000:telegram-token', secretToken: 'hook-secret' };
const slack = { botToken: 'xoxb-slack-token', signingSecret: 'signing-secret', teamId: 'T1', botUserId: 'U1' };
const secrets = [
  whatsapp.accessToken,
  whatsapp.verifyToken,
  whatsapp.appSecret,
  ...Object.values(telegram),
  slack.botToken,
  slack.signingSecret,
];
const apps = { whatsapp, messenger, telegram, slack };

let meta: FakeMeta;
let telegramApi: FakeTelegram;
let slackApi: FakeSlack;
let gateway: TestGateway;
let tenant: TestTenant;

beforeAll(async () => {
  meta = await new FakeMeta({ ...whatsapp, pageId: messenger.pageId }).start();
  telegramApi = await new FakeTelegram(telegram).start();
  slackApi = await new FakeSlack(slack).start();
  gateway = await TestGateway.start({
    providerUrls: { ...providerUrls, metaGraph: meta.url, telegram: telegramApi.url, slack: slackApi.url },
    publicUrl,
  });
});
beforeEach(async () => {
  tenant = await gateway.tenant();
  await setWebhook('');
});
afterAll(async () => {
  for (const open of [gateway, meta, telegramApi, slackApi]) await open[Symbol.asyncDispose]();
});

const put = async (channel: string, body: unknown, key = tenant.admin): Promise<Response> =>
  gateway.ask(key, `/api/channels/${channel}`, { method: 'PUT', body });

const remove = async (channel: string): Promise<Response> => gateway.ask(tenant.admin, `/api/channels/${channel}`, { method: 'DELETE' });

async function shown(response: Response): Promise<ConnectedChannel> {
  return ConnectedChannel.parse(await response.json());
}

async function get(channel: string): Promise<ConnectedChannel> {
  return shown(await gateway.ask(tenant.read, `/api/channels/${channel}`));
}

async function test(channel: string): Promise<ChannelTest> {
  return ChannelTest.parse(await (await gateway.ask(tenant.admin, `/api/channels/${channel}/test`, { method: 'POST' })).json());
}

async function problem(response: Response): Promise<Problem> {
  return Problem.parse(await response.json());
}

const findCredentials = ({ checks = [] }: { checks?: ConnectedChannel['checks'] }) => checks.find(({ name }) => name === 'credentials');
const findWebhook = ({ checks = [] }: { checks?: ConnectedChannel['checks'] }) => checks.find(({ name }) => name === 'webhook');

async function setWebhook(url: string, allowed?: readonly string[]): Promise<void> {
  const body = JSON.stringify({ url, secret_token: telegram.secretToken, ...(allowed && { allowed_updates: allowed }) });
  const method = url === '' ? 'deleteWebhook' : 'setWebhook';
  await fetch(`${telegramApi.url}/bot${telegram.botToken}/${method}`, { method: 'POST', body });
}

/** The same with another gateway, for as long as `use` takes. */
async function withGateway(config: Parameters<typeof TestGateway.start>[0], use: () => Promise<void>): Promise<void> {
  const usual = gateway;
  await using other = await TestGateway.start(config);
  gateway = other;
  tenant = await other.tenant();
  try {
    await use();
  } finally {
    gateway = usual;
  }
}

describe('connecting a channel', () => {
  it.each([
    ['whatsapp', 'channel_a', '15550783881'],
    ['messenger', 'channel_b', 'The Corner Shop'],
    ['telegram', 'channel_c', 'corner_shop_bot'],
    ['slack', 'channel_d', 'Corner Shop'],
  ] as const)('asks %s whose credentials these are, and shows the binding without them', async (app, channel, account) => {
    const created = await put(app, apps[app]);
    expect(created.status).toBe(201);
    const view = await shown(created);
    expect(view).toMatchObject({ channel, app, state: 'enabled', reason: null, lastInboundAt: null, lastError: null });
    expect(view.webhookUrl).toBe(`${publicUrl}/webhook/${app}/${tenant.id}`);
    expect(findCredentials(view)).toEqual({
      name: 'credentials',
      ok: true,
      message: `They are those of ${account}.`,
      code: 'credentials_valid',
      params: { account },
    });
    expect(await get(channel)).toEqual({ ...view, checks: undefined });
    expect((await put(channel, apps[app])).status).toBe(200);
    const listed = z.array(ConnectedChannel).parse(await (await gateway.ask(tenant.read, '/api/channels')).json());
    expect(listed.map((each) => each.app)).toEqual([app]);
  });

  it('shows, logs and keeps no secret', async () => {
    const texts: string[] = [];
    for (const [app, settings] of Object.entries(apps)) {
      texts.push(await (await put(app, settings)).text());
      texts.push(await (await gateway.ask(tenant.admin, `/api/channels/${app}/test`, { method: 'POST' })).text());
      texts.push(await (await gateway.ask(tenant.admin, `/api/channels/${app}`)).text());
    }
    const folder = join(tenant.scope.root, 'channels');
    for (const name of await readdir(folder)) texts.push(await readFile(join(folder, name), 'utf8'));
    for (const secret of secrets) expect(texts.join('\n')).not.toContain(secret);
  });

  it('fills in what messages are read by: the name of the bot, the app of the workspace', async () => {
    expect((await shown(await put('telegram', telegram))).identifiers).toEqual({ botUsername: 'corner_shop_bot' });
    expect((await shown(await put('slack', slack))).identifiers).toEqual({ teamId: 'T1', botUserId: 'U1', appId: 'A0FAKE' });
  });

  it('takes a page with its Instagram account, and an Instagram account alone', async () => {
    expect((await shown(await put('messenger', { ...messenger, instagramId: '1784' }))).identifiers).toEqual({
      pageId: '4042',
      instagramId: '1784',
    });
    await using instagram = await new FakeMeta({ ...whatsapp, pageId: '1784' }).start();
    await withGateway(
      { providerUrls: { ...providerUrls, metaGraph: instagram.url, telegram: telegramApi.url, slack: slackApi.url } },
      async () => {
        const view = await shown(await put('messenger', { ...messenger, pageId: '1784' }));
        expect([view.state, findCredentials(view)?.ok]).toEqual(['enabled', true]);
      },
    );
  });

  it.each([
    ['whatsapp', { ...whatsapp, accessToken: 'EAAB-somebody-elses' }, 'refused the access token'],
    ['messenger', { ...messenger, accessToken: 'EAAB-somebody-elses' }, 'refused the access token'],
    ['telegram', { ...telegram, botToken: '7001:somebody-elses' }, 'does not know this bot token'],
    ['telegram', { ...telegram, botUsername: 'other_bot' }, 'belongs to the bot corner_shop_bot'],
    ['slack', { ...slack, botToken: 'xoxb-somebody-elses' }, 'invalid_auth'],
    ['slack', { ...slack, teamId: 'T2' }, 'belongs to the workspace T1'],
    ['slack', { ...slack, botUserId: 'U2' }, 'belongs to the bot user U1'],
    ['slack', { ...slack, appId: 'A2' }, 'belongs to the app A0FAKE'],
  ])('stores nothing when %s refuses, and passes on why', async (app, settings, why) => {
    const refused = await put(app, settings);
    expect(refused.status).toBe(400);
    const { code, detail } = await problem(refused);
    expect(code).toBe('invalid_request');
    expect(detail).toContain(why);
    expect(detail).not.toContain('somebody-elses');
    expect((await gateway.ask(tenant.read, `/api/channels/${app}`)).status).toBe(404);
    expect(telegramApi.webhook).toBeUndefined();
  });

  it('keeps what was there when new credentials are refused', async () => {
    await put('slack', slack);
    expect((await put('slack', { ...slack, botToken: 'xoxb-wrong-token' })).status).toBe(400);
    expect((await test('slack')).ok).toBe(true);
  });

  it('is possible where no provider can be reached, and reports that it was not asked', async () => {
    const nowhere = `http://127.0.0.1:${String(await freePort())}`;
    await withGateway({ providerUrls: { metaGraph: nowhere, telegram: nowhere, slack: nowhere, twilio: nowhere }, publicUrl }, async () => {
      for (const [app, settings] of Object.entries(apps)) {
        const created = await put(app, settings);
        expect(created.status).toBe(201);
        const view = await shown(created);
        expect(view.state).toBe('enabled');
        expect(findCredentials(view)).toMatchObject({ ok: false, message: expect.stringContaining('could not be checked') });
        expect(findWebhook(view)?.ok).toBe(app === 'telegram' ? false : undefined);
        expect((await test(app)).ok).toBe(false);
        expect((await remove(app)).status).toBe(204);
      }
    });
  });

  it('names each field that is wrong, for exactly this channel', async () => {
    const { code, errors } = await problem(await put('telegram', { botToken: '7000:x', appSecret: 'y', secretToken: 'has space' }));
    expect(code).toBe('invalid_request');
    expect(errors).toEqual([
      { path: 'secretToken', message: 'must be 1 to 256 letters, digits, _ or -' },
      { path: '', message: 'Unrecognized key: "appSecret"' },
    ]);
    for (const body of [{}, [], 'text', { ...whatsapp, appSecret: '' }, slack]) expect((await put('whatsapp', body)).status).toBe(400);
    for (const name of ['web', 'channel_f', 'signal']) expect((await put(name, telegram)).status).toBe(404);
  });

  it('is the owner’s: others may look with a key to read, and no tenant sees another’s', async () => {
    await put('telegram', telegram);
    for (const key of [tenant.cs, tenant.read]) expect((await put('telegram', telegram, key)).status).toBe(403);
    expect((await gateway.ask(tenant.cs, '/api/channels')).status).toBe(403);
    expect((await gateway.ask(tenant.read, '/api/channels/telegram/test', { method: 'POST' })).status).toBe(403);
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, '/api/channels/telegram')).status).toBe(404);
    expect(await (await gateway.ask(other.admin, '/api/channels')).json()).toEqual([]);
  });
});

describe('the webhook of Telegram', () => {
  it('is registered with the binding and removed with it', async () => {
    const view = await shown(await put('telegram', telegram));
    expect(findWebhook(view)).toMatchObject({ ok: true });
    expect(telegramApi.webhook).toEqual({
      url: `${publicUrl}/webhook/telegram/${tenant.id}`,
      secret_token: telegram.secretToken,
      allowed_updates: ['message', 'callback_query', 'my_chat_member'],
    });
    expect((await remove('telegram')).status).toBe(204);
    expect(telegramApi.webhook).toBeUndefined();
    expect((await gateway.ask(tenant.admin, '/api/channels/telegram')).status).toBe(404);
  });

  it('is left alone when it leads elsewhere by the time the binding goes', async () => {
    await put('telegram', telegram);
    await setWebhook('https://elsewhere.example.com/hook');
    expect((await remove('telegram')).status).toBe(204);
    expect(telegramApi.webhook).toMatchObject({ url: 'https://elsewhere.example.com/hook' });
  });

  it('is checked by a test, which reports what is wrong with it', async () => {
    await put('telegram', telegram);
    expect(await test('telegram')).toMatchObject({
      ok: true,
      checks: [{ name: 'binding' }, { name: 'credentials' }, { name: 'webhook', ok: true }],
    });
    await setWebhook('https://elsewhere.example.com/hook');
    expect(findWebhook(await test('telegram'))).toMatchObject({
      ok: false,
      message: expect.stringContaining('elsewhere.example.com'),
      code: 'webhook_elsewhere',
      params: { url: 'https://elsewhere.example.com/hook', expected: `${publicUrl}/webhook/telegram/${tenant.id}` },
    });
    await setWebhook(`${publicUrl}/webhook/channel_c/${tenant.id}`, ['poll']);
    expect(findWebhook(await test('telegram'))?.message).toContain('not asked for message, callback_query, my_chat_member');
    await setWebhook(`${publicUrl}/webhook/channel_c/${tenant.id}`);
    expect(findWebhook(await test('telegram'))?.ok).toBe(true);
    await fetch(`${telegramApi.url}/bot${telegram.botToken}/deleteWebhook`, { method: 'POST' });
    expect(findWebhook(await test('telegram'))?.message).toContain('brings messages nowhere');
  });

  it('reports in a test what Telegram could not deliver', async () => {
    await put('telegram', telegram);
    await setWebhook(`http://127.0.0.1:${String(await freePort())}/webhook/telegram/${tenant.id}`);
    await telegramApi.deliver(5, { update_id: 1 });
    await setWebhook(`${publicUrl}/webhook/telegram/${tenant.id}`);
    expect(findWebhook(await test('telegram'))?.message).toContain('could not bring 1 updates: Wrong response');
    expect(findWebhook(await test('telegram'))).toMatchObject({
      code: 'webhook_failing',
      params: { count: '1', reason: expect.stringContaining('Wrong response') },
    });
  });

  it('is registered by hand without the gateway’s public address; a test looks at its path', async () => {
    await withGateway(
      { providerUrls: { ...providerUrls, metaGraph: meta.url, telegram: telegramApi.url, slack: slackApi.url } },
      async () => {
        const view = await shown(await put('telegram', telegram));
        expect([view.webhookUrl, findWebhook(view), telegramApi.webhook]).toEqual([`/webhook/telegram/${tenant.id}`, undefined, undefined]);
        await setWebhook(`https://any.example.com${view.webhookUrl}`);
        expect((await test('telegram')).ok).toBe(true);
        await remove('telegram');
        expect(telegramApi.webhook).toBeDefined();
      },
    );
  });

  it('is taken from the bot that was connected before', async () => {
    await using second = await new FakeTelegram({ botToken: '8000:second-token' }).start();
    await using both = await serveRequests(async (request) => {
      const { pathname } = new URL(request.url);
      const { url } = pathname.startsWith('/bot8000:') ? second : telegramApi;
      return fetch(`${url}${pathname}`, { method: 'POST', body: await request.text() });
    });
    const urls = { ...providerUrls, metaGraph: meta.url, telegram: new URL(both.url).origin, slack: slackApi.url };
    await withGateway({ providerUrls: urls, publicUrl }, async () => {
      await put('telegram', telegram);
      await put('telegram', { ...telegram, botToken: '8000:second-token' });
      expect([telegramApi.webhook, second.webhook?.url]).toEqual([undefined, `${publicUrl}/webhook/telegram/${tenant.id}`]);
    });
  });
});

describe('a test', () => {
  it('answers what the provider reports now', async () => {
    await put('slack', slack);
    expect(await test('slack')).toEqual({
      ok: true,
      checks: [
        { name: 'binding', ok: true, message: 'It is enabled.', code: 'binding_enabled', params: {} },
        {
          name: 'credentials',
          ok: true,
          message: 'They are those of Corner Shop.',
          code: 'credentials_valid',
          params: { account: 'Corner Shop' },
        },
      ],
    });
    await tenant.scope.channels.setDisabled('channel_d', 'the token was revoked');
    expect(await test('slack')).toMatchObject({
      ok: false,
      checks: [
        {
          name: 'binding',
          ok: false,
          message: 'It is disabled: the token was revoked',
          code: 'binding_disabled',
          params: { reason: 'the token was revoked' },
        },
        { name: 'credentials', ok: true },
      ],
    });
  });

  it('reports a damaged binding, and is 404 where there is none', async () => {
    expect((await gateway.ask(tenant.admin, '/api/channels/slack/test', { method: 'POST' })).status).toBe(404);
    await put('slack', slack);
    await writeFile(join(tenant.scope.root, 'channels', 'channel_d.json'), '{');
    expect(await test('slack')).toMatchObject({ ok: false, checks: [{ name: 'binding', ok: false }] });
    expect((await put('slack', slack)).status).toBe(200);
  });
});

describe('the reply window', () => {
  it.each([
    ['whatsapp', 'closed'],
    ['messenger', 'closed'],
    ['telegram', 'none'],
    ['slack', 'none'],
  ] as const)('of %s is %s before the first message', async (app, state) => {
    expect((await shown(await put(app, apps[app]))).window).toEqual({ state, until: null });
  });

  it('is open for a day after a message, and then closed', async () => {
    await put('whatsapp', whatsapp);
    const hour = 60 * 60_000;
    await tenant.scope.channels.note('channel_a', 'inbound', new Date(Date.now() - hour));
    const open = await get('whatsapp');
    expect(open.window.state).toBe('open');
    expect(Date.parse(open.window.until ?? '')).toBeGreaterThan(Date.now() + 22 * hour);
    await tenant.scope.channels.note('channel_a', 'inbound', new Date(Date.now() - 25 * hour));
    expect((await get('whatsapp')).window).toMatchObject({ state: 'closed', until: expect.any(String) });
  });
});

describe('credentials that are put there as a file', () => {
  it('are connected and sealed by the next look', async () => {
    await writeFile(join(tenant.scope.root, 'channels', 'telegram.json'), JSON.stringify(telegram));
    expect(await get('telegram')).toMatchObject({ state: 'enabled', secrets: { botToken: 'set', secretToken: 'set' } });
    expect(findWebhook(await test('telegram'))?.ok).toBe(false);
    // Telegram had not been asked before.
    expect(await get('telegram')).toMatchObject({ state: 'enabled', identifiers: { botUsername: 'corner_shop_bot' } });
    expect(await readdir(join(tenant.scope.root, 'channels'))).toEqual(['channel_c.json']);
  });
});
