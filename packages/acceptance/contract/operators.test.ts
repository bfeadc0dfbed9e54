import { describe, expect } from '@jest/globals';
import { AuditEntry, CreatedTenant, ErasureReport, ImportedTenant, routes, TurnTrace, TurnView } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { ContractSystem, promise, untilListed } from './fixture.ts';

let contract: ContractSystem;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
});

const Entries = z.array(AuditEntry);
const Turns = z.array(TurnView);
const Groups = routes.listFailures.answers[200].json;

describe('operators', () => {
  promise(['C/4/16'], 'manage tenants over HTTP, from making one to taking it along', async () => {
    const operator = contract.client();
    const path = '/ops/api/tenants/operated';
    const made = CreatedTenant.parse((await operator.request('/ops/api/tenants', { body: { id: 'operated', plan: 'preview' } })).json());
    const owner = contract.client(made.keys.admin);
    expect((await owner.get('/api/tenant')).json()).toMatchObject({ id: 'operated', plan: 'preview' });
    expect((await operator.get('/ops/api/tenants')).json()).toContainEqual(expect.objectContaining({ tenantId: 'operated' }));
    const changed = await operator.request(path, { method: 'PATCH', body: { plan: 'standard', limits: { requestsPerHour: 900 } } });
    expect(changed.json()).toMatchObject({ plan: 'standard', settings: { limits: { requestsPerHour: 900 } } });

    await operator.request(`${path}/suspend`, { method: 'POST' });
    await eventually(async () => (await owner.ask('admin', { message: 'x' })).status === 403);
    expect((await owner.ask('admin', { message: 'x' })).problem().code).toBe('tenant_suspended');
    await operator.request(`${path}/resume`, { method: 'POST' });
    await eventually(async () => (await owner.ask('admin', { message: 'x' })).status === 200);

    const key = z
      .object({ id: z.string(), key: z.string() })
      .parse((await operator.request(`${path}/keys`, { body: { scopes: ['read'] } })).json());
    expect((await contract.client(key.key).get('/api/sessions')).status).toBe(200);
    expect((await operator.request(`${path}/keys/${key.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await operator.get(`${path}/keys`)).json()).toContainEqual(
      expect.objectContaining({ id: key.id, revokedAt: expect.any(String) }),
    );

    const archive = new Uint8Array(await (await fetch(`${contract.system.url}${path}/export`)).arrayBuffer());
    expect((await operator.request(path, { method: 'DELETE' })).json()).toMatchObject({ tenantId: 'operated', deleted: true });
    const back = await operator.request('/ops/api/import', {
      method: 'POST',
      rawBody: archive,
      headers: { 'Content-Type': 'application/gzip' },
    });
    expect(ImportedTenant.parse(back.json())).toMatchObject({ tenantId: 'operated' });
    const sessions = await eventually(async () => {
      const answer = await owner.get('/api/sessions');
      return answer.status === 200 ? answer.json() : undefined;
    });
    expect(sessions).toHaveLength(1);
  });

  promise(['C/4/17'], 'and owners read who changed what, which no key can write', async () => {
    const tenant = await contract.tenant();
    const owner = tenant.as('admin');
    const text = { 'Content-Type': 'text/plain' };
    await owner.request('/api/files/SOUL.md', { method: 'PUT', rawBody: 'a planted word', headers: text });
    await contract.client().request(`/ops/api/tenants/${tenant.tenantId}`, { method: 'PATCH', body: { plan: 'preview' } });
    const own = await owner.get('/api/audit?limit=2');
    expect(Entries.parse(own.json()).map(({ by, act, target }) => [by.kind, act, target])).toEqual([
      ['operator', 'tenant.update', 'plan'],
      ['key', 'file.write', 'SOUL.md'],
    ]);
    expect(own.text).not.toContain('planted');
    const operators = Entries.parse((await contract.client().get('/ops/api/audit?limit=1')).json());
    expect(operators).toMatchObject([{ by: { kind: 'operator', via: 'api' }, act: 'tenant.update', tenantId: tenant.tenantId }]);
    const forged = await owner.request('/api/files/settings/audit/000001.jsonl', { method: 'PUT', rawBody: 'x', headers: text });
    expect(forged.status).toBe(400);
  });

  promise(['C/4/18'], 'and owners erase everything of one contact, and read what was erased', async () => {
    const tenant = await contract.tenant();
    const [owner, operator] = [tenant.as('admin'), contract.client()];
    const sender = 'erased.contact@example.com';
    for (const message of ['hello', 'hello again']) expect((await tenant.as('cs').ask('cs', { message, sender })).status).toBe(200);
    const begun = await owner.request('/api/erasures', { body: { sender } });
    expect(begun.status).toBe(202);
    const { id } = ErasureReport.parse(begun.json());
    const report = await eventually(async () => {
      const found = ErasureReport.parse((await owner.get(`/api/erasures/${id}`)).json());
      return found.erased.sessions > 0 ? found : undefined;
    });
    expect(report).toMatchObject({ erased: { turns: 2 }, lookAt: [] });
    expect((await owner.get('/api/sessions')).json()).toEqual([]);
    const path = `/ops/api/tenants/${tenant.tenantId}/erasures`;
    expect((await operator.get(`${path}/${id}`)).json()).toMatchObject({ id, erased: { sessions: 1 } });
    expect((await operator.request(path, { body: { sender: 'another@example.com' } })).json()).toMatchObject({ erased: { sessions: 0 } });
    const entries = await owner.get('/api/audit?limit=2');
    expect(Entries.parse(entries.json()).map(({ by, act }) => [by.kind, act])).toEqual([
      ['operator', 'contact.erase'],
      ['key', 'contact.erase'],
    ]);
    expect(entries.text).not.toContain(sender);
    expect((await owner.request('/api/erasures', { body: {} })).status).toBe(400);
  });
});

describe('the life of a turn', () => {
  promise(['C/4/5'], 'is shown to its owner and to operators, from its receipt to its end', async () => {
    const [tenant, operator] = [await contract.tenant(), contract.client()];
    const answer = await tenant.as('admin').ask('admin', { message: '[[tools:list_files {}]] [[say:done]]' });
    const { turnId } = z.object({ turnId: z.string() }).parse(answer.json());
    const trace = await eventually(async () => {
      const found = TurnTrace.parse((await tenant.as('read').get(`/api/turns/${turnId}/trace`)).json());
      return found.endedAt === null ? undefined : found;
    });
    const happened = trace.spans.filter(({ kind }) => kind !== 'waited');
    expect(happened.map(({ kind }) => kind)).toEqual(['received', 'prompt', 'model', 'tool', 'model', 'saved']);
    expect(happened[1]?.parts?.map(({ name }) => name)).toEqual(expect.arrayContaining(['AGENTS.md', 'tools', 'message']));
    const operated = await operator.get(`/ops/api/turns/${turnId}/trace?tenant=${tenant.tenantId}`);
    expect(TurnTrace.parse(operated.json())).toEqual(trace);
    expect((await tenant.as('read').get('/api/turns/t_00000000000000000000000000000000/trace')).status).toBe(404);
  });
});

describe('failed turns', () => {
  promise(['C/4/19'], 'are listed by cause, tried again once and on request, and live ones are cancelled', async () => {
    const tenant = await contract.tenant();
    const [client, operator] = [tenant.as('admin'), contract.client()];
    await client.ask('admin', { message: '[[fail:400 x9]] [[say:no]]' });
    await untilListed(tenant, 1);
    const [failed] = Turns.parse((await client.get('/api/turns')).json());
    const groups = await eventually(async () => {
      const found = Groups.parse((await operator.get(`/ops/api/failures?tenant=${tenant.tenantId}&code=provider_error`)).json());
      return found.length > 0 ? found : undefined;
    });
    expect(groups).toMatchObject([{ turns: 1, tenants: [{ tenantId: tenant.tenantId, turns: 1 }], example: { turnId: failed?.id } }]);
    expect(groups[0]?.provider).toEqual(expect.any(String));
    const found = await operator.get(`/ops/api/turns?tenant=${tenant.tenantId}&status=failed&code=provider_error&id=${failed?.id ?? ''}`);
    expect(found.json()).toMatchObject([{ tenantId: tenant.tenantId, id: failed?.id, error: { code: 'provider_error' } }]);
    const path = '/ops/api/turns/retry';
    const filter = { tenant: tenant.tenantId, until: new Date().toISOString() };
    expect((await operator.request(path, { body: filter })).json()).toMatchObject({ dryRun: true, turns: 1, retried: [] });
    expect(Turns.parse((await client.get('/api/turns')).json())).toHaveLength(1);
    const retried = (await operator.request(path, { body: { ...filter, dryRun: false } })).json();
    expect(retried).toMatchObject({ turns: 1, retried: [{ retryOf: failed?.id }] });
    const again = (await operator.request(path, { body: { ...filter, dryRun: false } })).json();
    expect(again).toMatchObject({ turns: 0, skipped: [{ reason: 'retried', turns: 1 }] });
    await untilListed(tenant, 2);
    expect(Turns.parse((await client.get('/api/turns')).json())).toHaveLength(2);
    const cancelled = await operator.request(`/ops/api/turns/${failed?.id ?? ''}/cancel?tenant=${tenant.tenantId}`, { method: 'POST' });
    expect(cancelled.status).toBe(202);
    expect(cancelled.json()).toMatchObject({ status: 'failed' });
  });

  promise(['C/4/19'], 'and so is what has not arrived, with a dry run of sending it again', async () => {
    const [tenant, operator] = [await contract.tenant(), contract.client()];
    const { outbox } = await contract.system.scope(tenant.tenantId);
    const outbound = { kind: 'message', channel: 'channel_c', sessionId: '0'.repeat(32), text: 'x', agent: 'cs', turnId: 't_1' } as const;
    const { id } = (await outbox.accept({ ...outbound, to: '1', callId: '1' })).message;
    await outbox.record(id, [
      { kind: 'end', at: new Date().toISOString(), state: 'expired', problem: { code: 'expired', message: 'Too late.' } },
    ]);
    await eventually(async () => {
      const delivery = await outbox.delivery(id);
      if (delivery !== undefined) await outbox.end(delivery);
      return (await outbox.deadIds()).includes(id);
    });
    const found = await operator.get(`/ops/api/deliveries?tenant=${tenant.tenantId}`);
    expect(found.json()).toMatchObject([{ tenantId: tenant.tenantId, channel: 'channel_c', dead: 1, lastDead: { id } }]);
    const body = { tenant: tenant.tenantId };
    expect((await operator.request('/ops/api/deliveries/redrive', { body })).json()).toMatchObject({ dryRun: true, deliveries: 1 });
    const one = await operator.request(`/ops/api/deliveries/${id}/redrive?tenant=${tenant.tenantId}`, { method: 'POST' });
    expect(one.status).toBe(202);
  });
});

describe('budgets', () => {
  promise(
    ['C/2/5', 'C/5/5', 'C/4/9'],
    'end a turn at the call after the one that spends them, then refuse messages, and show what is left',
    async () => {
      const tenant = await contract.tenant();
      const client = tenant.as('admin');
      const scope = await contract.system.scope(tenant.tenantId);
      await scope.events.endpoints.create({ url: 'https://example.com/', types: ['budget.reached'] });
      await scope.updateSettings({ limits: { tokensPerMonth: 1000 } });
      await client.ask('admin', { message: '[[say:x]] [[usage:700,150]]' });
      const views = async (): Promise<unknown> => (await tenant.as('read').get('/api/usage')).json();
      const budget = { period: 'month', unit: 'tokens', limit: 1000 };
      await eventually(async () => {
        expect(await views()).toMatchObject({ budgets: { items: [{ ...budget, spent: 850, reserved: 0, left: 150, state: 'low' }] } });
        return true;
      });
      const ended = await client.ask('admin', { message: '[[tools:list_files {}]] [[usage:150,1]] [[say:never]]' });
      expect(ended.problem()).toMatchObject({ status: 429, code: 'budget_exceeded' });
      const refused = await client.ask('admin', { message: '[[say:never]]' });
      expect(refused.problem()).toMatchObject({ status: 429, code: 'budget_exceeded' });
      for (const name of ['retry-after', 'ratelimit', 'ratelimit-policy']) expect([name, refused.headers.has(name)]).toEqual([name, true]);
      expect(await views()).toMatchObject({ budgets: { items: [{ ...budget, left: 0, state: 'spent' }] } });
      await eventually(async () => (await scope.events.list({ limit: 10 })).items.length === 2);
      expect((await client.request('/api/tenant', { method: 'PATCH', body: { limits: { tokensPerMonth: 9000 } } })).status).toBe(400);
    },
  );
});
