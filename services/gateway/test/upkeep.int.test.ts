import { once } from 'node:events';
import { AuditEntry, Problem, routes, type TenantDrift } from '@concierge/contract';
import { toContactFolder } from '@concierge/tenant';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { keyOf } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { parseEvents } from './sse.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const opsToken = 'operators-token-of-this-test';
const { cancelTurns, listOperatorAudit, reindexTenants } = routes;
const none = { added: 0, changed: 0, removed: 0 };

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
});

async function operate(path: string, method = 'GET', body?: object): Promise<Response> {
  return gateway.ask(undefined, path, { method, body, headers: { Authorization: `Bearer ${opsToken}` } });
}

async function listActs(tenant?: TestTenant): Promise<AuditEntry[]> {
  const query = tenant === undefined ? '' : `&tenant=${tenant.id}`;
  return z.array(AuditEntry).parse(await (await operate(`${listOperatorAudit.path}?limit=5${query}`)).json());
}

describe('the index of a tenant', () => {
  async function reindex(body: object): Promise<z.infer<(typeof reindexTenants.answers)[200]['json']>> {
    const response = await operate(reindexTenants.path, 'POST', body);
    expect(response.status).toBe(200);
    return reindexTenants.answers[200].json.parse(await response.json());
  }

  /** All tenants behind this one, in as many calls as it takes: one ends after some seconds, where it is then. */
  async function reindexAll(from?: string): Promise<TenantDrift[]> {
    const reports: TenantDrift[] = [];
    for (let cursor: string | null | undefined = from; cursor !== null;) {
      const page = await reindex({ cursor });
      reports.push(...page.tenants);
      cursor = page.nextCursor;
    }
    return reports;
  }

  async function reindexOne({ id }: TestTenant, dryRun?: boolean): Promise<TenantDrift | undefined> {
    const { tenants, nextCursor, ...rest } = await reindex({ tenant: id, dryRun });
    expect([nextCursor, rest, tenants.length]).toEqual([null, { dryRun: dryRun ?? true }, 1]);
    return tenants[0];
  }

  async function listTitles({ scope }: TestTenant): Promise<string[]> {
    return (await scope.index.listSessions({ limit: 10 })).items.map(({ title }) => title).toSorted();
  }

  /** Two conversations, of which the index has one, and one that there never was. */
  async function plantDrift(): Promise<TestTenant> {
    const tenant = await gateway.tenant();
    for (const sender of ['ann', 'bob'])
      await gateway.ask(tenant.cs, '/api/cs', { method: 'POST', body: { message: `I am ${sender}`, sender } });
    await eventually(async () => (await listTitles(tenant)).length === 2);
    expect((await reindexOne(tenant, false))?.drifted).toBe(false);
    const [ann] = (await tenant.scope.index.listSessions({ limit: 1, sender: 'ann' })).items;
    const session = await tenant.scope.sessions.load(ann?.id ?? '');
    if (session === undefined) throw new Error('ann has no conversation');
    await tenant.scope.index.putSession({ ...session, id: 'f'.repeat(32), title: 'never held', turns: [] });
    const { id, createdAt } = session;
    await tenant.scope.index.removeSession({ id, createdAt, removedAt: createdAt, usage: [] });
    await tenant.scope.contacts.remember({ sender: 'bob', displayName: 'Robert Ray' });
    await tenant.scope.index.removeContacts([toContactFolder('bob')]);
    return tenant;
  }

  it('is compared with the files, and changed only when that is asked for', async () => {
    const [tenant, other] = [await plantDrift(), await plantDrift()];
    const before = await listTitles(tenant);
    expect(before).toEqual(['I am bob', 'never held']);
    const found = await reindexOne(tenant);
    expect(found).toMatchObject({ tenantId: tenant.id, drifted: true });
    const drift = {
      sessions: { added: 1, changed: 0, removed: 1 },
      turns: { ...none, added: 1 },
      skills: none,
      contacts: { ...none, added: 1 },
    };
    expect(found?.drift).toMatchObject(drift);
    expect(await reindexOne(tenant)).toEqual(found);
    expect(await listTitles(tenant)).toEqual(before);
    expect(await reindexOne(tenant, false)).toEqual(found);
    expect(await listTitles(tenant)).toEqual(['I am ann', 'I am bob']);
    expect(await tenant.scope.index.findContacts('robert', 5)).toEqual(['bob']);
    expect(await reindexOne(tenant, false)).toMatchObject({ drifted: false, drift: { sessions: none, turns: none, usage: none } });
    expect(await listTitles(other)).toEqual(before);
    const acts = (await listActs(tenant)).filter(({ act }) => act === 'index.rebuild');
    // Before the drift was planted, and twice since.
    expect(acts).toMatchObject(Array(3).fill({ by: { kind: 'operator', via: 'api' }, tenantId: tenant.id }));
  });

  it('is found among those of all tenants, each once, from call to call', async () => {
    const planted = [await plantDrift(), await plantDrift()].map(({ id }) => id);
    const reports = await reindexAll();
    const ids = reports.map(({ tenantId }) => tenantId);
    expect(ids).toEqual([...new Set(ids)].toSorted());
    const drifted = reports.filter((report) => report.drifted).map(({ tenantId }) => tenantId);
    expect(drifted).toEqual(expect.arrayContaining(planted));
    const [first = '', second = ''] = planted.toSorted();
    const behind = (await reindexAll(first)).map(({ tenantId }) => tenantId);
    expect(behind).toContain(second);
    expect(behind).not.toContain(first);
  });

  it('is not for who has no operators’ token, nor of a tenant that is none', async () => {
    const { admin } = await gateway.tenant();
    expect((await gateway.ask(admin, reindexTenants.path, { method: 'POST', body: {} })).status).toBe(401);
    expect((await operate(reindexTenants.path, 'POST', { tenant: 'no-such-tenant' })).status).toBe(404);
    expect((await operate(reindexTenants.path, 'POST', { cursor: '..' })).status).toBe(400);
  });
});

describe('all turns of a tenant', () => {
  async function cancel(body: object): Promise<unknown> {
    const response = await operate(cancelTurns.path, 'POST', body);
    expect(response.status).toBe(200);
    return cancelTurns.answers[200].json.parse(await response.json());
  }

  async function ask({ cs }: TestTenant, message: string): Promise<Response> {
    return gateway.open(cs, '/api/cs', { method: 'POST', body: { message, sender: 'ann' } });
  }

  it('are counted and cancelled with a reason, their streams end, and no other tenant’s turn is touched', async () => {
    const [tenant, other] = [await gateway.tenant(), await gateway.tenant()];
    const finished = gate();
    const begun: string[] = [];
    gateway.script = async (run) => {
      begun.push(run.turn.text);
      await (run.turn.tenantId === tenant.id ? untilAborted(run.signal) : finished.opened);
      if (run.turn.tenantId !== tenant.id) await sayItBack(run);
    };
    const kept = await ask(other, 'of another');
    const streams = [await ask(tenant, 'one')];
    await eventually(() => begun.includes('one') && begun.includes('of another'));
    for (const message of ['two', 'three', 'four']) streams.push(await ask(tenant, message));
    const count = { tenantId: tenant.id, waiting: 3, running: 1 };
    expect(await cancel({ tenant: tenant.id })).toEqual({ ...count, dryRun: true });
    expect(await cancel({ tenant: tenant.id })).toEqual({ ...count, dryRun: true });
    const unexplained = await operate(cancelTurns.path, 'POST', { tenant: tenant.id, dryRun: false });
    expect([unexplained.status, unexplained.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
    expect(Problem.parse(await unexplained.json()).errors).toMatchObject([{ path: 'reason' }]);
    const asked = { tenant: tenant.id, dryRun: false, reason: 'A loop of their own bots.' };
    expect(await cancel(asked)).toEqual({ ...count, dryRun: false });
    for (const stream of streams) {
      const last = parseEvents(await stream.text()).at(-1);
      expect(last).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
    }
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length === 0);
    // What has ended is not cancelled again, and not recorded again.
    expect(await cancel(asked)).toEqual({ tenantId: tenant.id, dryRun: false, waiting: 0, running: 0 });
    expect(await other.scope.inbox.turnIds()).toHaveLength(1);
    finished.open();
    expect(parseEvents(await kept.text()).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'stop' } });
    const act = { act: 'turn.cancel-all', tenantId: tenant.id, target: null, reason: asked.reason };
    for (const acts of [await listActs(tenant), await listActs()])
      expect(acts.filter((entry) => entry.act === 'turn.cancel-all')).toMatchObject([act]);
  });

  it('are on record as far as they were cancelled before Redis went away, how many and whose', async () => {
    const tenant = await gateway.tenant();
    gateway.holdTurns();
    await ask(tenant, 'one');
    await eventually(async () => (await tenant.scope.inbox.turnIds()).length === 1);
    await Promise.all(Array.from({ length: 40 }, async (_, number) => ask(tenant, String(number))));
    const turnIds = await tenant.scope.inbox.turnIds();
    const subscriber = gateway.redis.client();
    const killed = gate();
    subscriber.once('message', () => void gateway.redis.kill().then(() => killed.open()));
    await subscriber.subscribe(keyOf.cancel);
    const cutOff = await operate(cancelTurns.path, 'POST', { tenant: tenant.id, dryRun: false, reason: 'A loop of their own bots.' });
    await killed.opened;
    subscriber.disconnect();
    await gateway.redis.start();
    await eventually(async () => (await gateway.ask(undefined, '/readyz')).status === 200);
    expect(Problem.parse(await cutOff.json())).toMatchObject({ status: 503, code: 'overloaded' });

    const marked = await Promise.all(turnIds.map(async (turnId) => tenant.scope.inbox.isCancelled(turnId)));
    const turns = marked.filter(Boolean).length;
    expect(turns).toBeGreaterThan(0);
    expect(turns).toBeLessThan(turnIds.length);
    const act = { act: 'turn.cancel-all', tenantId: tenant.id, target: null, reason: 'A loop of their own bots.', turns };
    for (const acts of [await listActs(tenant), await listActs()])
      expect(acts.filter((entry) => entry.tenantId === tenant.id && entry.act === 'turn.cancel-all')).toMatchObject([act]);
  });

  it('are on record with the reason before the first is cancelled, for a gateway that is killed in between', async () => {
    const tenant = await gateway.tenant();
    const begun = gate();
    gateway.script = async ({ signal }) => {
      begun.open();
      await untilAborted(signal);
    };
    await ask(tenant, 'one');
    await begun.opened;
    const subscriber = gateway.redis.client();
    await subscriber.subscribe(keyOf.cancel);
    // What is on disk when the first turn is told.
    const entriesThen = once(subscriber, 'message').then(async () => (await tenant.scope.audit.page({ limit: 5 })).entries);
    const reason = 'A loop of their own bots.';
    await cancel({ tenant: tenant.id, dryRun: false, reason });
    const entry = { act: 'turn.cancel-all-begin', tenantId: tenant.id, target: null, reason };
    expect((await entriesThen).filter(({ act }) => act === entry.act)).toMatchObject([entry]);
    subscriber.disconnect();
    // Of a count, and of a call that finds nothing to cancel any more, nothing is on record.
    await cancel({ tenant: tenant.id });
    await cancel({ tenant: tenant.id, dryRun: false, reason });
    for (const acts of [await listActs(tenant), await listActs()])
      expect(acts.filter(({ tenantId, act }) => tenantId === tenant.id && act.startsWith('turn.cancel-all'))).toMatchObject([
        { ...entry, act: 'turn.cancel-all', turns: 1 },
        entry,
      ]);
  });

  it('are not cancelled by who has no operators’ token, nor of a tenant that is none', async () => {
    const { admin, id } = await gateway.tenant();
    expect((await gateway.ask(admin, cancelTurns.path, { method: 'POST', body: { tenant: id } })).status).toBe(401);
    expect((await operate(cancelTurns.path, 'POST', { tenant: 'no-such-tenant' })).status).toBe(404);
    expect((await operate(cancelTurns.path, 'POST', {})).status).toBe(400);
  });
});
