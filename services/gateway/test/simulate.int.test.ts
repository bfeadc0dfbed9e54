import { describe, expect, it } from '@jest/globals';
import {
  ConnectedChannel,
  messagingChannels,
  Problem,
  SimulationReceipt,
  toAppName,
  TurnView,
  type MessagingChannel,
} from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { telegram, whatsApp } from './channels.ts';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const meta = { accessToken: 'access-token', verifyToken: 'verify-token', appSecret: 'app-secret' };
const settingsOf: Readonly<Record<MessagingChannel, object>> = {
  channel_a: whatsApp,
  channel_b: { pageId: '200', ...meta },
  channel_c: telegram,
  channel_d: { botToken: 'xoxb-1', signingSecret: 'f'.repeat(32), teamId: 'T1', botUserId: 'U1' },
  channel_e: { accountSid: `AC${'0'.repeat(32)}`, authToken: 'a'.repeat(32), from: '+4930123456' },
};

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
  for (const channel of messagingChannels) await tenant.scope.channels.connect(channel, settingsOf[channel]);
});

async function simulate(app: string, body: object): Promise<Response> {
  return gateway.ask(tenant.admin, `/api/channels/${app}/simulate`, { method: 'POST', body });
}

async function accept(app: string, body: object): Promise<SimulationReceipt> {
  const answer = await simulate(app, body);
  expect(answer.status).toBe(202);
  return SimulationReceipt.parse(await answer.json());
}

type SimulationReceipt = z.infer<typeof SimulationReceipt>;

async function get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.infer<Schema>> {
  return schema.parse(await (await gateway.ask(tenant.read, path)).json());
}

describe('a simulated message', () => {
  it.each(messagingChannels.map((channel) => [toAppName(channel), channel] as const))(
    'comes in on %s by the path of its webhooks, and its turn is marked',
    async (app, channel) => {
      gateway.script = sayItBack;
      const { turnId, contact_id: contactId } = await accept(app, { message: 'Is it here?', sender: 'ada' });
      const turn = await eventually(async () => {
        const found = await get(`/api/turns/${turnId}`, TurnView);
        return found.endedAt === null ? undefined : found;
      });
      expect(turn).toMatchObject({ contact_id: contactId, channel, origin: 'webhook', agent: 'cs', input: 'Is it here?', simulated: true });
      const again = await accept(app, { message: 'And now?', sender: 'ada' });
      expect(again).toMatchObject({ contact_id: contactId });
      expect(again.turnId).not.toBe(turnId);
    },
  );

  it('is not the first message that an owner waits for', async () => {
    await accept('telegram', { message: 'Hello?', sender: 'ben' });
    expect(await get('/api/channels/telegram', ConnectedChannel)).toMatchObject({ lastInboundAt: null });
  });

  it('is marked while it waits, and others are not', async () => {
    gateway.holdTurns();
    const { turnId } = await accept('whatsapp', { message: 'Hello?', sender: 'carla' });
    const real = await gateway.open(tenant.admin, '/api/cs', { method: 'POST', body: { message: 'I am real', sender: 'dora' } });
    await real.body?.cancel();
    const turns = await get('/api/turns', z.array(TurnView));
    expect(turns.filter(({ simulated }) => simulated === true).map(({ channel }) => channel)).not.toContain('web');
    expect(turns.find(({ id }) => id === turnId)).toMatchObject({ endedAt: null, simulated: true });
  });

  it('is refused as busy where others are turned away while one is answered', async () => {
    gateway.holdTurns();
    const other = await gateway.tenant();
    await other.scope.channels.connect('channel_c', telegram);
    await other.scope.updateSettings({ channels: { telegram: { busy: 'reject' } } });
    const post = async (message: string): Promise<Response> =>
      gateway.ask(other.admin, '/api/channels/telegram/simulate', { method: 'POST', body: { message, sender: 'eve' } });
    expect((await post('First?')).status).toBe(202);
    expect(Problem.parse(await (await post('Second?')).json())).toMatchObject({ status: 409, code: 'session_busy' });
  });

  it('needs a channel that is connected', async () => {
    const other = await gateway.tenant();
    const body = { message: 'Hello?' };
    const answer = await gateway.ask(other.admin, '/api/channels/telegram/simulate', { method: 'POST', body });
    expect(Problem.parse(await answer.json())).toMatchObject({ status: 404, code: 'not_found' });
  });
});
