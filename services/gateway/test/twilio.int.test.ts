import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConnectedChannel, type TwilioSettings } from '@concierge/contract';
import { providerUrls } from '@concierge/channel';
import { deriveSessionId } from '@concierge/tenant';
import { eventually, FakeTwilio } from '@concierge/testing';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const twilio = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'auth-token', from: '+15005550006' } satisfies TwilioSettings;
const publicUrl = 'https://chat.example.com/concierge';
const contact = '+4915112345678';

let gateway: TestGateway;
let provider: FakeTwilio;
let tenant: TestTenant;

beforeAll(async () => {
  provider = await new FakeTwilio({ ...twilio, senders: ['+15005550006'] }).start();
  gateway = await TestGateway.start({ providerUrls: { ...providerUrls, twilio: provider.url }, publicUrl });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});
beforeEach(async () => {
  tenant = await gateway.tenant();
  await tenant.scope.updateSettings({ channels: { twilio: { debounceMs: 0 } } });
});

const connect = async (settings: object = twilio): Promise<Response> =>
  gateway.ask(tenant.admin, '/api/channels/twilio', { method: 'PUT', body: settings });

/**
 * As Twilio calls it: signed with the public address, and passed to the gateway by a proxy that takes the path in
 * front away.
 */
async function bring(fields: Readonly<Record<string, string>>, path = `/webhook/twilio/${tenant.id}`, signedPath = path): Promise<number> {
  const message = { From: contact, To: twilio.from, ...fields };
  const [last] = await provider.deliver(message, { url: `${publicUrl}${signedPath}`, through: `${gateway.url}${path}` });
  return last?.status ?? 0;
}

async function said(): Promise<string[]> {
  const session = await tenant.scope.sessions.load(deriveSessionId('cs', 'channel_e', contact));
  return (session?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));
}

describe('Twilio', () => {
  it('is connected, with its auth token sealed, and shown under both of its names', async () => {
    const answer = await connect();
    expect(answer.status).toBe(201);
    const shown = ConnectedChannel.parse(await answer.json());
    expect(shown).toMatchObject({
      channel: 'channel_e',
      app: 'twilio',
      state: 'enabled',
      identifiers: { accountSid: twilio.accountSid, from: '+15005550006' },
      secrets: { authToken: 'set' },
      webhookUrl: `${publicUrl}/webhook/twilio/${tenant.id}`,
      window: { state: 'none', until: null },
      checks: [{ name: 'credentials', ok: true, message: 'They are those of Corner Shop.' }],
    });
    const other = await gateway.ask(tenant.admin, '/api/channels/channel_e');
    expect(await other.text()).not.toContain(twilio.authToken);
  });

  it('is not connected with credentials that it does not know', async () => {
    const answer = await connect({ ...twilio, authToken: 'another' });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('Twilio does not know this account');
  });

  it('delivers a message that is answered once, however often it comes', async () => {
    await connect();
    const fields = { MessageSid: 'SM1', Body: 'Are you open?', NumMedia: '0' };
    expect(await Promise.all(Array.from({ length: 5 }, async () => bring(fields)))).toEqual([200, 200, 200, 200, 200]);
    expect(await bring(fields, `/webhook/channel_e/${tenant.id}`)).toBe(200);
    expect(await eventually(async () => ((await said()).length > 0 ? said() : undefined))).toEqual(['Are you open?']);
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length === 0);
    expect(await bring(fields)).toBe(200);
    expect(await tenant.scope.inbox.turnIds()).toEqual([]);
    expect(await said()).toEqual(['Are you open?']);
  });

  it('is refused without its signature, for another address, another tenant, and where it is not connected', async () => {
    const fields = { MessageSid: 'SM2', Body: 'Hello', NumMedia: '0' };
    expect(await bring(fields)).toBe(401);
    await connect();
    expect(await bring(fields, `/webhook/twilio/${tenant.id}`, '/webhook/twilio/another')).toBe(401);
    const unsigned = await fetch(`${gateway.url}/webhook/twilio/${tenant.id}`, { method: 'POST', body: new URLSearchParams(fields) });
    expect(unsigned.status).toBe(401);
    expect((await gateway.ask(undefined, `/webhook/twilio/${tenant.id}`)).status).toBe(401);
    expect(await tenant.scope.inbox.turnIds()).toEqual([]);
  });

  it('records who has left, and who is back', async () => {
    await connect();
    expect(await bring({ MessageSid: 'SM3', Body: 'STOP', OptOutType: 'STOP' })).toBe(200);
    expect(await tenant.scope.contacts.unreachableSince('channel_e', contact)).toMatch(/^20/u);
    expect(await bring({ MessageSid: 'SM4', Body: 'START', OptOutType: 'START' })).toBe(200);
    expect(await tenant.scope.contacts.unreachableSince('channel_e', contact)).toBeUndefined();
  });
});
