import { describe, expect, it } from '@jest/globals';
import { UsageReport } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { postTelegram, telegram } from './channels.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

async function say(key: string, path = '/api/cs'): Promise<Response> {
  return gateway.ask(key, path, { method: 'POST', body: { message: 'hello' }, headers: { Accept: 'application/json' } });
}

/** Its one turn has taken the eight tokens that it may. */
async function spent(): Promise<TestTenant> {
  const tenant = await gateway.tenant();
  expect((await say(tenant.cs)).status).toBe(200);
  await tenant.scope.updateSettings({ limits: { tokensPerDay: 8 } });
  return tenant;
}

async function report({ read }: TestTenant): Promise<UsageReport> {
  return UsageReport.parse(await (await gateway.ask(read, '/api/usage')).json());
}

describe('a tenant whose budget is spent', () => {
  it('is refused before acceptance, at every endpoint, until its day ends', async () => {
    const tenant = await spent();
    const refused = await say(tenant.admin, '/api/admin');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ code: 'budget_exceeded', detail: expect.stringContaining('budget of 8 tokens') });
    const retrySeconds = Number(refused.headers.get('retry-after'));
    expect(retrySeconds).toBeGreaterThan(0);
    expect(retrySeconds).toBeLessThanOrEqual(24 * 3600);
    expect(refused.headers.get('ratelimit')).toMatch(/^"budget";r=0;t=\d+$/u);
    const body = { model: 'cs', messages: [{ role: 'user', content: 'x' }] };
    const openAi = await gateway.ask(tenant.cs, '/v1/chat/completions', { method: 'POST', body });
    expect([openAi.status, openAi.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(await (await gateway.ask(tenant.admin, '/api/turns')).json()).toHaveLength(1);
  });

  it('gets the reply to what it had asked before, under the same Idempotency-Key', async () => {
    const tenant = await gateway.tenant();
    const ask = async (key: string): Promise<Response> =>
      gateway.ask(tenant.cs, '/api/cs', {
        method: 'POST',
        body: { message: 'hello' },
        headers: { Accept: 'application/json', 'Idempotency-Key': key },
      });
    const first = await ask('one');
    await tenant.scope.updateSettings({ limits: { tokensPerDay: 8 } });
    const again = await ask('one');
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true']);
    expect(await again.json()).toEqual(await first.json());
    expect((await ask('two')).status).toBe(429);
  });

  it('shows no figures to its contacts', async () => {
    const refused = await say((await spent()).cs);
    expect(await refused.json()).toMatchObject({
      code: 'budget_exceeded',
      detail: 'This service cannot answer at the moment. Try again later.',
    });
  });

  it('has what comes through channels accepted: its contacts get a sentence', async () => {
    const tenant = await spent();
    await tenant.scope.channels.connect('channel_c', telegram);
    const from = { id: 7, is_bot: false, first_name: 'Ann' };
    const update = { update_id: 1, message: { message_id: 1, date: 1, chat: { id: 7, type: 'private' }, from, text: 'hello' } };
    expect((await postTelegram(gateway, tenant.id, update)).status).toBe(200);
  });

  it('sees what is left of it, and a tenant without one sees nothing', async () => {
    const tenant = await spent();
    const item = { period: 'day', unit: 'tokens', limit: 8, spent: 8, reserved: 0, left: 0, state: 'spent' };
    expect((await report(tenant)).budgets).toMatchObject({ timezone: 'UTC', scheduleShare: 0.9, items: [item] });
    expect((await report(await gateway.tenant())).budgets).toBeUndefined();
  });
});

describe('the owner', () => {
  it('cannot raise a budget, nor begin a new day by another time zone', async () => {
    const tenant = await spent();
    const patch = async (body: unknown): Promise<number> =>
      (await gateway.ask(tenant.admin, '/api/tenant', { method: 'PATCH', body })).status;
    expect(await patch({ limits: { tokensPerDay: 1000 } })).toBe(400);
    const before = (await report(tenant)).budgets?.items[0]?.from;
    expect(await patch({ timezone: 'Pacific/Kiritimati' })).toBe(200);
    expect(await patch({ timezone: 'Asia/Tokyo' })).toBe(200);
    expect((await report(tenant)).budgets).toMatchObject({ timezone: 'UTC', items: [{ from: before, spent: 8 }] });
    expect((await tenant.scope.settings()).timezone).toBe('Asia/Tokyo');
  });
});
