import { describe, expect, it } from '@jest/globals';
import { RetentionReport } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

const sessions = { count: 0, examples: [] };
const none = { count: 0, bytes: 0 };

async function change(tenant: TestTenant, retention: unknown): Promise<number> {
  return (await gateway.ask(tenant.admin, '/api/tenant', { method: 'PATCH', body: { retention } })).status;
}

async function preview(tenant: TestTenant, query = ''): Promise<unknown> {
  const answer = await gateway.ask(tenant.read, `/api/retention${query}`);
  expect(answer.status).toBe(200);
  return RetentionReport.parse(await answer.json());
}

describe('GET /api/retention', () => {
  it('says what the rule of the settings would remove, or another one', async () => {
    const tenant = await gateway.tenant();
    gateway.script = sayItBack;
    await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers: { Accept: 'application/json' }, body: { message: 'Hello' } });
    expect(await preview(tenant)).toEqual({ rule: {}, sessions, history: none, uploads: none, hasMore: false });
    expect(await change(tenant, { sessionsDays: 30, uploadsDays: 7 })).toBe(200);
    expect(await preview(tenant)).toMatchObject({ rule: { sessionsDays: 30, uploadsDays: 7 }, sessions });
    expect(await preview(tenant, '?historyDays=5')).toMatchObject({ rule: { historyDays: 5 }, sessions });
    expect(await change(tenant, { sessionsDays: null })).toBe(200);
    expect(await preview(tenant)).toMatchObject({ rule: { uploadsDays: 7 } });
    for (const days of ['0', '1.5', '36501', 'ten'])
      expect((await gateway.ask(tenant.read, `/api/retention?sessionsDays=${days}`)).status).toBe(400);
    expect(await change(tenant, { sessionsDays: 0 })).toBe(400);
  });

  it('is there for operators, by tenant', async () => {
    const tenant = await gateway.tenant();
    const path = `/ops/api/tenants/${tenant.id}`;
    const changed = await gateway.ask(undefined, path, { method: 'PATCH', body: { retention: { sessionsDays: 400 } } });
    expect(changed.status).toBe(200);
    expect(await (await gateway.ask(undefined, `${path}/retention`)).json()).toMatchObject({ rule: { sessionsDays: 400 }, sessions });
    expect((await gateway.ask(undefined, '/ops/api/tenants/not-there/retention')).status).toBe(404);
  });
});
