import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import {
  ChannelSetup,
  PolicyVerdict,
  Problem,
  ScheduleTimes,
  ScheduleView,
  SessionListItem,
  SessionPage,
  TurnView,
  UploadRef,
  WhoAmI,
} from '@concierge/contract';
import { eventually, onePixelPng, silentLog as log } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ProcessAnnouncement } from '@concierge/turn';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';
import { sayItBack } from './scripted-turns.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ publicUrl: 'https://shop.example' }));
});

async function begin(): Promise<void> {
  tenant = await gateway.tenant();
  gateway.script = sayItBack;
}

const Chat = z.object({ contact_id: z.string(), turnId: z.string() });

async function chat(message: string, body: object = {}): Promise<z.infer<typeof Chat>> {
  const path = 'sender' in body ? '/api/cs' : '/api/admin';
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, path, { method: 'POST', headers, body: { message, ...body } });
  const chatted = Chat.parse(await answer.json());
  await untilListed(({ id }) => id === chatted.turnId);
  return chatted;
}

async function get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.infer<Schema>> {
  const answer = await gateway.ask(tenant.read, path);
  expect(answer.status).toBe(200);
  return schema.parse(await answer.json());
}

/** The turn that has ended, once the lists have it: on a busy machine they may be behind the answer. */
async function untilListed(isMeant: (turn: TurnView) => boolean): Promise<TurnView> {
  return eventually(async () => (await get('/api/turns', z.array(TurnView))).find((turn) => turn.endedAt !== null && isMeant(turn)));
}

async function failTurn(message: string, body: object = {}): Promise<string> {
  gateway.script = async () => Promise.reject(new Error('down'));
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers, body: { message, ...body } });
  expect(answer.status).toBe(502);
  gateway.script = sayItBack;
  const { id } = await untilListed(({ status }) => status === 'failed');
  return id;
}

describe('GET /api/whoami', () => {
  it('names the tenant, its key, plan and limits, and whether the demo model answers', async () => {
    await begin();
    await tenant.scope.updateSettings({ name: 'The shop', timezone: 'Europe/Berlin', limits: { requestsPerHour: 500 } });
    for (const scope of ['admin', 'cs', 'read'] as const) {
      const answer = await gateway.ask(tenant[scope], '/api/whoami');
      expect(WhoAmI.parse(await answer.json())).toMatchObject({
        tenantId: tenant.id,
        name: 'The shop',
        scopes: [scope],
        plan: 'standard',
        limits: { requestsPerHour: 500 },
        timezone: 'Europe/Berlin',
        demoModel: false,
        publicUrl: 'https://shop.example',
        sendsEmail: null,
      });
    }
  });

  it('says whether owners get e-mails, as cron announces it', async () => {
    await begin();
    const read = async (): Promise<unknown> => (await get('/api/whoami', WhoAmI)).sendsEmail;
    for (const sendsEmail of [false, true]) {
      const redis = gateway.redis.client();
      const announcement = new ProcessAnnouncement({ redis, service: 'cron', databasePool: 0, sendsEmail, log });
      await announcement.start();
      expect(await read()).toBe(sendsEmail);
      await announcement.stop();
      redis.disconnect();
    }
    expect(await read()).toBeNull();
  });
});

describe('the list of sessions', () => {
  it('shows who wrote, under which name, the last words and who has the conversation', async () => {
    await begin();
    const { contact_id: id } = await chat('Is it open?', { sender: '4915', channel: 'whatsapp' });
    await tenant.scope.contacts.remember({ sender: '4915', displayName: 'Ann Lee' });
    const list = async (query = ''): Promise<SessionListItem[]> => get(`/api/sessions${query}`, z.array(SessionListItem));
    expect(await list()).toMatchObject([
      { id, sender: '4915', contactName: 'Ann Lee', state: 'agent', lastMessage: { from: 'agent', text: 'Is it open?' } },
    ]);
    await chat('Something else entirely');
    for (const query of ['?q=ann%20l', '?q=4915', '?q=IS%20IT', '?channel=whatsapp', '?sender=4915', '?q=open&channel=whatsapp'])
      expect((await list(query)).map((item) => item.id)).toEqual([id]);
    expect(await list('?q=100%25')).toEqual([]);

    await gateway.ask(tenant.admin, `/api/sessions/${id}/handoff`, { method: 'POST', body: { notify: false } });
    expect((await list('?state=waiting')).map((item) => item.id)).toEqual([id]);
    expect((await list('?state=agent')).map((item) => item.id)).not.toContain(id);
    expect(await list('?state=with_staff')).toEqual([]);
  });

  it('shows a conversation whose last turn failed as such', async () => {
    await begin();
    await chat('fine');
    await failTurn('not fine');
    const failed = await get('/api/sessions?state=failed', z.array(SessionListItem));
    expect(failed).toMatchObject([{ state: 'failed', lastMessage: { text: 'not fine' } }]);
  });
});

describe('a page of a conversation', () => {
  it('has whole turns with their records, the last ones first', async () => {
    await begin();
    const { contact_id: id } = await chat('one');
    for (const message of ['two', 'three']) await chat(message, { contact_id: id });
    const last = await get(`/api/sessions/${id}?limit=2`, SessionPage);
    expect(last.messages.map((message) => (message.role === 'tool' ? '' : message.text))).toEqual(['two', 'two', 'three', 'three']);
    expect(last.turns).toMatchObject([
      { status: 'done', usage: { inputTokens: 3, outputTokens: 5 }, costUsd: null, error: null },
      { status: 'done' },
    ]);
    const first = await get(`/api/sessions/${id}?limit=2&before=${last.before ?? ''}`, SessionPage);
    expect(first.messages.map((message) => (message.role === 'tool' ? '' : message.text))).toEqual(['one', 'one']);
    expect(first.before).toBeNull();
    expect((await gateway.ask(tenant.read, `/api/sessions/${id}?limit=2&before=none`)).status).toBe(400);
    expect((await gateway.ask(tenant.read, `/api/sessions/${id}`)).status).toBe(200);
  });
});

describe('turns', () => {
  it('are filtered by agent, channel, origin and error, and begin with what was asked', async () => {
    await begin();
    await chat('Hello there', { sender: 'ann', channel: 'telegram' });
    const failed = await failTurn(`Long: ${'x'.repeat(500)}`);
    const list = async (query: string): Promise<TurnView[]> => get(`/api/turns?${query}`, z.array(TurnView));
    expect(await list('agent=cs')).toMatchObject([{ input: 'Hello there', agent: 'cs', channel: 'channel_c', costUsd: null }]);
    expect(await list('channel=telegram')).toHaveLength(1);
    expect(await list('origin=api')).toHaveLength(2);
    expect(await list('origin=webhook')).toEqual([]);
    expect((await list('error=provider_error')).map(({ id, input }) => [id, input?.length])).toEqual([[failed, 200]]);
    expect(await list('error=internal_error')).toEqual([]);
    expect((await gateway.ask(tenant.read, '/api/turns?error=made_up')).status).toBe(400);
    expect(await get(`/api/turns/${failed}`, TurnView)).toMatchObject({ input: expect.stringContaining('Long: xxx') });
  });

  it('that wait show what they were asked, too', async () => {
    await begin();
    gateway.holdTurns();
    const open = await gateway.open(tenant.admin, '/api/admin', { method: 'POST', body: { message: 'Hold on' } });
    await eventually(async () => (await get('/api/turns?status=running', z.array(TurnView))).length === 1);
    const [running] = await get('/api/turns?status=running', z.array(TurnView));
    expect(running).toMatchObject({ input: 'Hold on' });
    await gateway.ask(tenant.admin, `/api/turns/${running?.id ?? ''}/cancel`, { method: 'POST' });
    await open.text();
  });

  it('that failed are accepted once more, once', async () => {
    await begin();
    const failed = await failTurn('Try me');
    const retry = async (key: string, id = failed): Promise<Response> => gateway.ask(key, `/api/turns/${id}/retry`, { method: 'POST' });
    expect((await retry(tenant.cs)).status).toBe(403);
    const first = TurnView.parse(await (await retry(tenant.admin)).json());
    await eventually(async () => (await get(`/api/turns/${first.id}`, TurnView)).status === 'done');
    const second = TurnView.parse(await (await retry(tenant.admin)).json());
    expect(second.id).toBe(first.id);
    expect(await get(`/api/turns/${first.id}`, TurnView)).toMatchObject({ input: 'Try me', contact_id: second.contact_id });
    expect((await retry(tenant.admin, first.id)).status).toBe(409);
    expect((await retry(tenant.admin, 't_none')).status).toBe(404);
    const audit = await get('/api/audit', z.array(z.looseObject({ act: z.string(), target: z.string().nullable() })));
    expect(audit).toContainEqual(expect.objectContaining({ act: 'turn.retry', target: failed }));
  });

  it('that failed are accepted once more with the rights of their agents, as far as their keys reach', async () => {
    const begun: string[] = [];
    const writeAgent = async (isPublic: boolean): Promise<unknown> =>
      tenant.scope.files.writeText('agents/buyer.md', `---\ndescription: Buys\npublic: ${String(isPublic)}\n---\nBuy.`);
    /** A turn of the agent as it was, accepted once more by the agent as it is. */
    const failTwice = async (asker: 'cs' | 'admin'): Promise<void> => {
      await begin();
      gateway.script = async ({ turn }) => {
        begun.push(turn.authority);
        return Promise.reject(new Error('down'));
      };
      await writeAgent(asker === 'cs');
      const asked = { method: 'POST', headers: { Accept: 'application/json' }, body: { message: 'Buy', sender: 'ann' } };
      expect((await gateway.ask(tenant[asker], '/api/agents/buyer', asked)).status).toBe(502);
      const { id: failed } = await untilListed(({ status }) => status === 'failed');
      await writeAgent(false);
      const { id: again } = TurnView.parse(
        await (await gateway.ask(tenant.admin, `/api/turns/${failed}/retry`, { method: 'POST' })).json(),
      );
      await untilListed(({ id }) => id === again);
    };
    await failTwice('admin');
    await failTwice('cs');
    expect(begun).toEqual(['admin', 'admin', 'cs', 'cs']);
  });
});

describe('an upload', () => {
  it('is downloaded as it was, as an attachment of its own type', async () => {
    await begin();
    const files = [{ bytes: onePixelPng, name: 'Größe "x".png' }];
    const [upload] = z.array(UploadRef).parse(await (await gateway.ask(tenant.cs, '/api/uploads', { method: 'POST', files })).json());
    const answer = await gateway.ask(tenant.read, `/api/uploads/${upload?.id ?? ''}`);
    expect(Buffer.from(await answer.arrayBuffer()).equals(Buffer.from(onePixelPng))).toBe(true);
    expect(answer.headers.get('content-type')).toBe('image/png');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+"; filename\*=UTF-8''Gr%C3%B6%C3%9Fe/u);
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, `/api/uploads/${upload?.id ?? ''}`)).status).toBe(404);
    expect((await gateway.ask(tenant.read, '/api/uploads/nothing')).status).toBe(404);
  });
});

describe('a schedule', () => {
  it('names its next five runs in its own zone', async () => {
    await begin();
    const schedule = { cron: '0 9 * * *', timezone: 'Asia/Kolkata' };
    const body = { name: 'Daily', message: 'x', schedule };
    const made = ScheduleView.parse(await (await gateway.ask(tenant.admin, '/api/cron', { method: 'POST', body })).json());
    expect(made.nextRuns).toHaveLength(5);
    for (const run of made.nextRuns) expect(run).toMatch(/^\d{4}-\d\d-\d\dT09:00:00\.000\+05:30$/u);
    expect(Date.parse(made.nextRuns[0] ?? '')).toBe(Date.parse(made.nextRunAt ?? ''));
    const paused = await gateway.ask(tenant.admin, `/api/cron/${made.id}`, { method: 'PATCH', body: { enabled: false } });
    expect(ScheduleView.parse(await paused.json()).nextRuns).toEqual([]);
  });

  it('shows its next runs before it is made, or the words in which it would be refused', async () => {
    await begin();
    const ask = async (query: string): Promise<Response> => gateway.ask(tenant.read, `/api/schedule-times?${query}`);
    const cron = new URLSearchParams({ cron: '30 7 * * *', timezone: 'America/New_York' }).toString();
    const { nextRuns } = ScheduleTimes.parse(await (await ask(cron)).json());
    expect(nextRuns).toHaveLength(5);
    for (const run of nextRuns) expect(run).toMatch(/^\d{4}-\d\d-\d\dT07:30:00\.000-0[45]:00$/u);
    const at = new Date(Date.now() + 86_400_000).toISOString();
    expect(ScheduleTimes.parse(await (await ask(`at=${at}`)).json()).nextRuns).toEqual([at]);
    for (const schedule of [{ cron: '* * *', timezone: 'UTC' }, { every: '5s' }, { cron: '0 8 * * *' }, {}]) {
      const refused = await ask(new URLSearchParams(Object.entries(schedule)).toString());
      const made = await gateway.ask(tenant.admin, '/api/cron', { method: 'POST', body: { name: 'x', message: 'x', schedule } });
      expect(refused.status).toBe(400);
      expect(Problem.parse(await refused.json()).errors).toEqual(Problem.parse(await made.json()).errors);
    }
    expect(await (await gateway.ask(tenant.read, '/api/cron')).json()).toEqual([]);
  });
});

describe('POST /api/policy/check', () => {
  async function check(agent: string, tool: string, input: object = {}): Promise<PolicyVerdict> {
    const answer = await gateway.ask(tenant.admin, '/api/policy/check', { method: 'POST', body: { agent, tool, arguments: input } });
    expect(answer.status).toBe(200);
    return PolicyVerdict.parse(await answer.json());
  }

  it('answers allowed, or refused by which rule', async () => {
    await begin();
    await tenant.scope.files.writeText('agents/buyer.md', '---\ndescription: Buys\ntools: [read, write, mcp__shop__find]\n---\nBuy.');
    await tenant.scope.updateSettings({ agents: { buyer: { tools: ['read', 'mcp__shop__find'] } } });
    expect(await check('admin', 'bash')).toMatchObject({ allowed: true, rule: 'none' });
    expect(await check('admin', 'fly')).toMatchObject({ allowed: false, rule: 'unknown_tool' });
    expect(await check('cs', 'bash')).toMatchObject({ allowed: false, rule: 'access' });
    expect(await check('buyer', 'bash')).toMatchObject({ rule: 'agent_file', reason: expect.stringContaining('agents/buyer.md') });
    expect(await check('buyer', 'write')).toMatchObject({ rule: 'settings' });
    expect(await check('buyer', 'mcp__shop__find')).toMatchObject({ rule: 'mcp_server' });
    expect(await check('cs', 'read', { path: 'skills/refunds/SKILL.md' })).toMatchObject({ allowed: true });
    expect(await check('cs', 'read', { path: 'SOUL.md' })).toMatchObject({ rule: 'path' });
    expect(await check('cs', 'read', { path: 'skills/.versions/x' })).toMatchObject({ rule: 'path' });
    expect(await check('admin', 'read', { path: 'keys/k.json' })).toMatchObject({ rule: 'path' });
    expect(await check('admin', 'write', { path: '../other/x' })).toMatchObject({ rule: 'path' });
    const missing = await gateway.ask(tenant.admin, '/api/policy/check', { method: 'POST', body: { agent: 'ghost', tool: 'read' } });
    expect(missing.status).toBe(404);
  });
});

describe('the set-up of a channel', () => {
  it('names its webhook, fields and a token, before and after it is connected', async () => {
    await begin();
    const path = '/api/channels/whatsapp/setup';
    const before = await get(path, ChannelSetup);
    expect(before).toMatchObject({
      app: 'whatsapp',
      connected: false,
      hasPublicUrl: true,
      webhookUrl: `https://shop.example/webhook/whatsapp/${tenant.id}`,
      fields: expect.arrayContaining([
        { name: 'phoneNumberId', isSecret: false, isRequired: true },
        { name: 'appSecret', isSecret: true, isRequired: true },
      ]),
    });
    expect(await get(path, ChannelSetup)).toEqual(before);
    const token = before.verifyToken?.value ?? '';
    expect(token).toMatch(/^[\w-]{43}$/u);
    await tenant.scope.channels.connect('channel_a', { phoneNumberId: '1', accessToken: 'a', verifyToken: token, appSecret: 's' });
    expect(await get(path, ChannelSetup)).toEqual({ ...before, connected: true });
    await tenant.scope.channels.connect('channel_a', { phoneNumberId: '1', accessToken: 'a', verifyToken: 'own', appSecret: 's' });
    expect(await get(path, ChannelSetup)).toMatchObject({ connected: true, verifyToken: null });
    expect(await get('/api/channels/slack/setup', ChannelSetup)).toMatchObject({ verifyToken: null });
    const other = await gateway.tenant();
    const theirs = ChannelSetup.parse(await (await gateway.ask(other.read, path)).json());
    expect(theirs.verifyToken?.value).not.toBe(token);
  });
});

describe('POST /api/export', () => {
  it('answers with everything of the tenant, to an admin alone, and puts it on record', async () => {
    await begin();
    await tenant.scope.files.writeText('memory/secret-recipe.md', 'Two spoons of sugar.');
    const ask = async (key: string): Promise<Response> => gateway.ask(key, '/api/export', { method: 'POST' });
    for (const key of [tenant.cs, tenant.read]) expect((await ask(key)).status).toBe(403);
    const answer = await ask(tenant.admin);
    expect(answer.headers.get('content-type')).toBe('application/gzip');
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="${tenant.id}.tar.gz"`);
    const archive = gunzipSync(Buffer.from(await answer.arrayBuffer())).toString('latin1');
    expect(archive).toContain(`${tenant.id}/memory/secret-recipe.md`);
    expect(archive).toContain('Two spoons of sugar.');
    const acts = (await get('/api/audit', z.array(z.looseObject({ act: z.string() })))).map(({ act }) => act);
    expect(acts).toContain('tenant.export');
  });
});
