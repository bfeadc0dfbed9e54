import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from '@jest/globals';
import { channelDefinitions, ChannelTest, ConnectedChannel } from '@concierge/contract';
import { eventually, FakeMeta, FakeSlack, FakeTelegram, FakeTwilio } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { ContractSystem, promise, type Tenant } from './fixture.ts';

const metaSecrets = { accessToken: 'EAAB-access-token', verifyToken: 'the-verify-token', appSecret: 'the-app-secret' };
const apps = {
  whatsapp: { phoneNumberId: '1065', ...metaSecrets },
  messenger: { pageId: '4042', ...metaSecrets },
  telegram: { botToken: '7000:telegram-token', secretToken: 'hook-secret' },
  slack: { botToken: 'xoxb-slack-token', signingSecret: 'the-signing-secret', teamId: 'T1', botUserId: 'U1' },
  twilio: { accountSid: `AC${'1'.repeat(32)}`, authToken: 'the-auth-token', from: '+15005550006' },
} as const;
const spellings = {
  whatsapp: 'channel_a',
  messenger: 'channel_b',
  telegram: 'channel_c',
  slack: 'channel_d',
  twilio: 'channel_e',
} as const;

let contract: ContractSystem;
let meta: FakeMeta;
let telegram: FakeTelegram;
let slack: FakeSlack;
let twilio: FakeTwilio;

setUpOnce(async (stack) => {
  meta = stack.use(await new FakeMeta({ ...apps.whatsapp, ...apps.messenger }).start());
  telegram = stack.use(await new FakeTelegram(apps.telegram).start());
  slack = stack.use(await new FakeSlack(apps.slack).start());
  twilio = stack.use(await new FakeTwilio({ ...apps.twilio, senders: [apps.twilio.from] }).start());
  const urls = { META_GRAPH_URL: meta.url, TELEGRAM_API_URL: telegram.url, SLACK_API_URL: slack.url, TWILIO_API_URL: twilio.url };
  contract = stack.use(await ContractSystem.start({ gateways: 2, env: { ...urls, PUBLIC_URL: 'https://chat.example.com' } }));
});

async function put(tenant: Tenant, channel: string, body: unknown): Promise<ReturnType<ReturnType<Tenant['as']>['request']>> {
  return tenant.as('admin').request(`/api/channels/${channel}`, { method: 'PUT', body });
}

describe('channels', () => {
  promise(['C/4/6', 'C/3/7'], 'are connected, shown, tested and disconnected, under every spelling and through every gateway', async () => {
    const tenant = await contract.tenant();
    for (const [app, settings] of Object.entries(apps)) {
      expect((await put(tenant, app, settings)).status).toBe(201);
    }
    const listed = z.array(ConnectedChannel).parse((await tenant.as('read', 1).get('/api/channels')).json());
    expect(listed.map(({ app, state }) => [app, state])).toEqual(Object.keys(apps).map((app) => [app, 'enabled']));
    for (const [app, channel] of Object.entries(spellings)) {
      const shown = ConnectedChannel.parse((await tenant.as('read').get(`/api/channels/${channel}`)).json());
      expect((await tenant.as('read').get(`/api/channels/${app}`)).json()).toEqual(shown);
      expect(shown.webhookUrl).toBe(`https://chat.example.com/webhook/${app}/${tenant.tenantId}`);
      // The providers are in this process: one that stood still for longer than it is waited for is asked again.
      await eventually(async () => {
        const tested = await tenant.as('admin').request(`/api/channels/${channel}/test`, { method: 'POST' });
        expect(ChannelTest.parse(tested.json())).toMatchObject({ ok: true });
        return true;
      });
      expect((await tenant.as('admin', 1).request(`/api/channels/${channel}`, { method: 'DELETE' })).status).toBe(204);
      expect((await tenant.as('read').get(`/api/channels/${app}`)).problem()).toMatchObject({ code: 'not_found' });
    }
    expect((await put(tenant, 'web', {})).problem()).toMatchObject({ code: 'not_found' });
  });

  promise(['C/4/6'], 'take exactly the fields of their app', async () => {
    const tenant = await contract.tenant();
    for (const [app, settings] of Object.entries(apps)) {
      for (const field of Object.keys(settings)) {
        const { [field]: _, ...rest } = { ...settings } as Record<string, string>;
        expect((await put(tenant, app, rest)).problem().errors?.map(({ path }) => path)).toEqual([field]);
        expect((await put(tenant, app, { ...settings, [field]: '' })).status).toBe(400);
      }
      expect((await put(tenant, app, { ...settings, more: 'x' })).problem().errors?.[0]?.message).toContain('more');
    }
    expect((await tenant.as('read').get('/api/channels')).json()).toEqual([]);
  });

  promise(['C/4/6'], 'have secrets that are written only: in no answer, no file and no log', async () => {
    const tenant = await contract.tenant();
    const seen: string[] = [];
    for (const [app, settings] of Object.entries(apps)) {
      seen.push((await put(tenant, app, settings)).text);
      seen.push((await tenant.as('admin').get(`/api/channels/${app}`)).text);
      seen.push((await tenant.as('admin').request(`/api/channels/${app}/test`, { method: 'POST' })).text);
      seen.push((await put(tenant, app, { ...settings, more: 'x' })).text);
    }
    const { root } = await contract.system.scope(tenant.tenantId);
    await writeFile(join(root, 'channels', 'telegram.json'), JSON.stringify(apps.telegram));
    seen.push((await tenant.as('admin').get('/api/channels')).text);
    for (const name of await readdir(join(root, 'channels'))) seen.push(await readFile(join(root, 'channels', name), 'utf8'));
    for (const gateway of ['gateway-0', 'gateway-1']) seen.push(await contract.system.readServiceLog(gateway));
    const all = seen.join('\n');
    for (const [app, channel] of Object.entries(spellings)) {
      const settings: Readonly<Record<string, string>> = apps[app as keyof typeof apps]; // eslint-disable-line typescript/no-unsafe-type-assertion -- the keys are these, which Object.entries forgets
      for (const name of channelDefinitions[channel].secrets) expect(all).not.toContain(settings[name]);
    }
  });

  promise(['C/4/6', 'C/2/4'], 'are refused when their provider refuses them, and are the owner’s', async () => {
    const tenant = await contract.tenant();
    // One that could not be asked in time does not keep them from being connected.
    const refused = await eventually(async () => {
      const answer = await put(tenant, 'slack', { ...apps.slack, teamId: 'T2' });
      if (answer.status !== 201) return answer;
      expect(answer.text).toContain('"credentials_unreachable"');
      expect((await tenant.as('admin').request('/api/channels/slack', { method: 'DELETE' })).status).toBe(204);
      return undefined;
    });
    expect(refused.problem()).toMatchObject({ status: 400, code: 'invalid_request', detail: 'The bot token belongs to the workspace T1.' });
    const body = apps.telegram;
    for (const key of ['cs', 'read'] as const)
      expect((await tenant.as(key).request('/api/channels/telegram', { method: 'PUT', body })).status).toBe(403);
    expect((await tenant.as('cs').get('/api/channels')).status).toBe(403);
    expect((await tenant.as('read').get('/api/channels')).json()).toEqual([]);
  });
});
