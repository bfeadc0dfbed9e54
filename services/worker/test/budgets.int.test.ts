import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { TurnView, UsageReport } from '@concierge/contract';
import { callTools, eventually, gate, say, until, usage, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { contactWrites, TestSystem, type Tenant } from './test-system.ts';

/** Dollars per million tokens: a call of ten thousand tokens costs one dollar. */
const price = { input: 100, output: 100 };
const oneDollar = usage({ promptTokens: 9990, completionTokens: 10 });

let whole: TestSystem;
let model: ScriptedModel;

setUpOnce(async (stack) => {
  // Nothing listens there: what is sent to a contact waits in the outbox.
  whole = stack.use(await TestSystem.start({ price, env: { TELEGRAM_API_URL: 'http://127.0.0.1:9' } }));
  ({ model } = whole);
});

async function ask({ keys, url }: Tenant, message: string): Promise<Response> {
  const headers = { 'x-api-key': keys.admin, 'content-type': 'application/json', accept: 'application/json' };
  return await fetch(`${url}/api/admin`, { method: 'POST', headers, body: JSON.stringify({ message }) });
}

async function read<Schema extends z.ZodType>(schema: Schema, { keys, url }: Tenant, path: string): Promise<z.output<Schema>> {
  return schema.parse(await (await fetch(`${url}${path}`, { headers: { 'x-api-key': keys.admin } })).json());
}

async function readBudget(tenant: Tenant): Promise<NonNullable<UsageReport['budgets']>['items'][number] | undefined> {
  return (await read(UsageReport, tenant, '/api/usage')).budgets?.items[0];
}

describe('a budget', () => {
  it('is passed by a call or two, and not by all of twenty turns at once', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.updateSettings({ limits: { usdPerDay: 5 } });
    model.when('many at once', ...Array.from({ length: 20 }, () => [say('paid'), oneDollar]));
    const answers = await Promise.all(Array.from({ length: 20 }, async () => ask(tenant, 'many at once')));
    const bodies = await Promise.all(answers.map(async (answer) => ({ status: answer.status, body: await answer.text() })));
    const paid = bodies.filter(({ status }) => status === 200).length;
    expect(paid).toBeGreaterThanOrEqual(3);
    // Each reserves most of a dollar; the last one that finds room may pass the limit.
    expect(paid).toBeLessThanOrEqual(8);
    for (const { status, body } of bodies.filter((one) => one.status !== 200)) {
      expect(status).toBe(429);
      expect(body).toContain('budget_exceeded');
    }
    // On a busy machine the index is behind the answers.
    const { total } = await eventually(async () => {
      const report = await read(UsageReport, tenant, '/api/usage');
      return report.total.calls >= paid ? report : undefined;
    });
    expect(total.costUsd).toBeCloseTo(paid);
    await eventually(async () => (await readBudget(tenant))?.reserved === 0);
    expect(await readBudget(tenant)).toMatchObject({ unit: 'usd', limit: 5, spent: paid });
    await whole.system.redis.flush();
    expect(await eventually(async () => await readBudget(tenant))).toMatchObject({ spent: paid });
  });

  it('that is spent in the middle of a turn ends it with what it has', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.updateSettings({ limits: { usdPerDay: 1 } });
    const write = { name: 'write', args: { path: 'half.md', content: 'half' } };
    model.when('half of it', [say('First I write.'), callTools([write]), oneDollar], [say('never')]);
    const refused = await ask(tenant, 'half of it');
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ code: 'budget_exceeded', detail: expect.stringContaining('budget of 1 US dollars') });
    // The list, too, may be behind the answer.
    const turn = await eventually(async () => {
      const [found] = await read(z.array(TurnView), tenant, '/api/turns');
      return found?.endedAt == null ? undefined : found;
    });
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'budget_exceeded' } });
    const session = await tenant.scope.sessions.load(turn.contact_id);
    expect(session?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect((await tenant.scope.files.readText('half.md'))?.text).toBe('half');
  });

  it('that has no more room than for twenty calls of a killed worker has room for their second attempts', async () => {
    await using own = await TestSystem.start({ env: { WORKER_CONCURRENCY: '20', TENANT_SHARE: '20' } });
    const tenant = await own.tenant();
    await tenant.scope.updateSettings({ limits: { tokensPerDay: 1e9 } });
    const few = usage({ promptTokens: 9, completionTokens: 1 });
    const turns = Array.from({ length: 20 });
    const held = gate();
    own.model.when('all at once', ...turns.map(() => [until(held.opened)]), ...turns.map(() => [say('answered'), few]));
    const answers = Promise.all(turns.map(async () => ask(tenant, 'all at once')));
    await eventually(() => own.model.requests.length >= turns.length, { timeoutMs: 120_000 });
    const reserved = (await readBudget(tenant))?.reserved ?? 0;
    expect(reserved).toBeGreaterThan(20_000);
    const [worker] = own.system.workers;
    await worker?.kill();
    // Not one further call fits beside the reservations that the worker has left.
    await tenant.scope.updateSettings({ limits: { tokensPerDay: reserved } });
    worker?.start();
    expect((await answers).map(({ status }) => status)).toEqual(turns.map(() => 200));
    await eventually(async () => (await readBudget(tenant))?.reserved === 0);
    expect(await readBudget(tenant)).toMatchObject({ limit: reserved, spent: 200 });
    held.open();
  });

  it('counts the turns of sub-agents', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.updateSettings({ limits: { usdPerDay: 100 } });
    const start = { name: 'subagents', args: { action: 'run', task: 'the small part' } };
    model.when('the large part', [callTools([start]), oneDollar], [say('done'), oneDollar]);
    model.when('the small part', [say('small'), oneDollar]);
    expect((await ask(tenant, 'the large part')).status).toBe(200);
    await eventually(async () => (await readBudget(tenant))?.spent === 3);
  });

  it('that is spent gives a contact on a channel the sentence of failed turns', async () => {
    const tenant = await whole.tenant();
    const { scope } = tenant;
    await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
    await scope.updateSettings({ limits: { usdPerDay: 1 }, onFailure: { notice: 'Wir sind morgen wieder da.' } });
    model.when('all of it', [say('paid'), oneDollar]);
    expect((await ask(tenant, 'all of it')).status).toBe(200);
    const turns = await whole.openTurns();
    await turns.accept(scope, contactWrites('4711', 'are you there?'));
    const text = await eventually(async () => (await scope.outbox.waiting())[0]?.text);
    expect(text).toBe('Wir sind morgen wieder da.');
    expect(model.requests.filter(({ userText }) => userText.includes('are you there?'))).toEqual([]);
  });
});
