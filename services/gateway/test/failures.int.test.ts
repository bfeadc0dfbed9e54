import { AuditEntry, routes, TurnTrace, TurnView, type FailureGroup, type OperatedTurn } from '@concierge/contract';
import { eventually, gate, untilAborted } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type Asked, type TestTenant } from './test-gateway.ts';

const opsToken = 'operators-token-of-this-test';
const { listFailures, retryTurns } = routes;

let gateway: TestGateway;
let isBroken = true;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
  gateway.script = async (run) => {
    if (isBroken && run.turn.text !== 'works') throw new Error('the provider is down');
    await sayItBack(run);
  };
});

async function operate(path: string, init: Asked = {}): Promise<Response> {
  return gateway.ask(undefined, path, { ...init, headers: { Authorization: `Bearer ${opsToken}` } });
}

/** All pages of a list, one behind the other. */
async function readPages<Item>(path: string, page: z.ZodType<Item[]>): Promise<Item[]> {
  const items: Item[] = [];
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Response = await operate(next);
    expect(response.status).toBe(200);
    items.push(...page.parse(await response.json()));
    next = /<([^>]+)>/u.exec(response.headers.get('link') ?? '')?.[1];
  }
  return items;
}

async function listAll(query = ''): Promise<FailureGroup[]> {
  return readPages(`${listFailures.path}?${query}`, listFailures.answers[200].json);
}

async function retry(body: object): Promise<z.infer<(typeof retryTurns.answers)[200]['json']>> {
  const response = await operate(retryTurns.path, { method: 'POST', body });
  expect(response.status).toBe(200);
  return retryTurns.answers[200].json.parse(await response.json());
}

async function listTurns({ admin }: TestTenant): Promise<TurnView[]> {
  return z.array(TurnView).parse(await (await gateway.ask(admin, '/api/turns')).json());
}

async function say(tenant: TestTenant, message: string): Promise<void> {
  await gateway.ask(tenant.cs, '/api/cs', { method: 'POST', body: { message, sender: 'ann' } });
}

async function failTwice(): Promise<TestTenant> {
  const tenant = await gateway.tenant();
  isBroken = true;
  await say(tenant, 'one');
  await say(tenant, 'works');
  await say(tenant, 'two');
  await eventually(async () => (await listTurns(tenant)).filter(({ endedAt }) => endedAt !== null).length === 3);
  return tenant;
}

describe('failed turns', () => {
  it('are listed by cause: how many, whose, since when, and the last one', async () => {
    const [first, second] = [await failTwice(), await failTwice()];
    const groups = await listAll();
    const group = groups.find(({ code }) => code === 'provider_error');
    expect(group).toMatchObject({ message: 'The model provider failed.', model: null, provider: null });
    expect(group?.tenants).toEqual(
      expect.arrayContaining([
        { tenantId: first.id, turns: 2 },
        { tenantId: second.id, turns: 2 },
      ]),
    );
    expect(Date.parse(group?.firstAt ?? '')).toBeLessThanOrEqual(Date.parse(group?.lastAt ?? ''));
    const [own] = await listAll(`tenant=${second.id}`);
    const failed = (await listTurns(second)).filter(({ status }) => status === 'failed');
    expect(own).toMatchObject({ turns: 2, tenants: [{ tenantId: second.id, turns: 2 }], example: { tenantId: second.id, agent: 'cs' } });
    expect(failed.map(({ id }) => id)).toContain(own?.example.turnId);
  });

  it('are those of a period and of a code', async () => {
    const tenant = await failTwice();
    expect(await listAll(`tenant=${tenant.id}&code=turn_crashed`)).toEqual([]);
    expect(await listAll(`tenant=${tenant.id}&until=2026-01-01T00:00:00Z&since=2025-01-01T00:00:00Z`)).toEqual([]);
    expect(await listAll(`tenant=${tenant.id}&code=provider_error`)).toMatchObject([{ turns: 2 }]);
  });

  it('of tenants and places that are none are refused', async () => {
    expect((await operate(`${listFailures.path}?tenant=nobody`)).status).toBe(404);
    expect((await operate(`${listFailures.path}?cursor=..`)).status).toBe(400);
  });
});

describe('turns of all tenants', () => {
  const { listOperatedTurns } = routes;

  async function listPages(query: string): Promise<OperatedTurn[]> {
    return readPages(`${listOperatedTurns.path}?${query}`, listOperatedTurns.answers[200].json);
  }

  it('are listed tenant by tenant, page by page, by state, code and id', async () => {
    const [first, second] = [await failTwice(), await failTwice()];
    const failed = (await listPages('status=failed&limit=1')).filter(({ tenantId }) => [first.id, second.id].includes(tenantId));
    expect(failed.map(({ tenantId }) => tenantId)).toEqual([first.id, first.id, second.id, second.id].toSorted());
    expect(await listPages(`code=provider_error&tenant=${second.id}`)).toEqual(failed.filter(({ tenantId }) => tenantId === second.id));
    expect(await listPages(`code=turn_crashed&tenant=${second.id}`)).toEqual([]);
    const [turn] = await listTurns(second);
    // What was said is not for operators.
    const { input, ...shown } = turn ?? {};
    expect(input).toBe('two');
    expect(await listPages(`id=${turn?.id ?? ''}`)).toEqual([{ tenantId: second.id, ...shown }]);
    expect(await listPages(`id=${turn?.contact_id ?? ''}&tenant=${second.id}&limit=2`)).toHaveLength(3);
    expect(await listPages(`id=${turn?.contact_id ?? ''}&status=done&tenant=${second.id}`)).toMatchObject([{ status: 'done' }]);
  });

  it('show the life of one, to who operates and to whose it is', async () => {
    const [tenant, other] = [await failTwice(), await gateway.tenant()];
    const [failed] = (await listTurns(tenant)).filter(({ status }) => status === 'failed');
    const path = `/turns/${failed?.id ?? ''}/trace`;
    const own = await gateway.ask(tenant.read, `/api${path}`);
    expect(own.status).toBe(200);
    const trace = TurnTrace.parse(await own.json());
    expect(trace).toMatchObject({ status: 'failed', error: { code: 'provider_error' } });
    expect(trace.spans.map(({ kind }) => kind)).toEqual(['received', 'saved']);
    const operated = await operate(`/ops/api${path}?tenant=${tenant.id}`);
    expect(TurnTrace.parse(await operated.json())).toEqual(trace);
    expect((await gateway.ask(other.admin, `/api${path}`)).status).toBe(404);
    for (const query of [`?tenant=${other.id}`, '?tenant=nobody']) expect((await operate(`/ops/api${path}${query}`)).status).toBe(404);
  });

  it('are found while they run', async () => {
    const tenant = await gateway.tenant();
    const before = gateway.script;
    const finished = gate();
    gateway.script = async () => await finished.opened;
    const stream = await gateway.open(tenant.cs, '/api/cs', { method: 'POST', body: { message: 'hello' } });
    const [running] = await eventually(async () => {
      const found = await listPages('status=running');
      return found.some(({ tenantId }) => tenantId === tenant.id) ? found.filter(({ tenantId }) => tenantId === tenant.id) : undefined;
    });
    expect(await listPages(`id=${running?.id ?? ''}`)).toMatchObject([{ tenantId: tenant.id, status: 'running' }]);
    expect(await listPages(`code=provider_error&tenant=${tenant.id}`)).toEqual([]);
    finished.open();
    await stream.text();
    gateway.script = before;
  });

  it('are the operators’ alone', async () => {
    const { admin } = await gateway.tenant();
    expect((await gateway.ask(admin, listOperatedTurns.path)).status).toBe(401);
    expect((await operate(`${listOperatedTurns.path}?tenant=none-of-these`)).status).toBe(404);
    for (const query of ['status=lost', 'cursor=..', 'limit=0', 'any=1'])
      expect((await operate(`${listOperatedTurns.path}?${query}`)).status).toBe(400);
  });
});

describe('the retry of failed turns', () => {
  it('says how many and whose first, and accepts each of them once, those that were answered never', async () => {
    const tenant = await failTwice();
    const filter = { tenant: tenant.id, until: new Date().toISOString() };
    expect(await retry(filter)).toEqual({
      dryRun: true,
      turns: 2,
      tenants: [{ tenantId: tenant.id, turns: 2 }],
      retried: [],
      skipped: [],
      nextCursor: null,
    });
    expect(await listTurns(tenant)).toHaveLength(3);

    isBroken = false;
    const one = await retry({ ...filter, dryRun: false, limit: 1 });
    expect(one).toMatchObject({ dryRun: false, turns: 1 });
    expect(one.nextCursor).not.toBeNull();
    const other = await retry({ ...filter, dryRun: false, limit: 1, cursor: one.nextCursor ?? undefined });
    expect(other).toMatchObject({ turns: 1, nextCursor: null });
    const again = await retry({ ...filter, dryRun: false });
    expect(again).toMatchObject({ turns: 0, retried: [], skipped: [{ reason: 'retried', turns: 2 }] });
    const turns = await eventually(async () => {
      const found = await listTurns(tenant);
      return found.filter(({ endedAt }) => endedAt !== null).length === 5 ? found : undefined;
    });
    const retried = [...one.retried, ...other.retried];
    for (const { turnId } of retried) expect(turns).toContainEqual(expect.objectContaining({ id: turnId, status: 'done' }));
    const failed = turns.filter(({ status }) => status === 'failed').map(({ id }) => id);
    expect(retried.map(({ retryOf }) => retryOf).toSorted()).toEqual(failed.toSorted());
    const audit = z.array(AuditEntry).parse(await (await gateway.ask(tenant.admin, '/api/audit')).json());
    expect(
      audit
        .filter(({ act }) => act === 'turn.retry')
        .map(({ target }) => target ?? '')
        .toSorted(),
    ).toEqual(failed.toSorted());
  });

  it('is one of a conversation or of a single turn, where it is asked for by its id', async () => {
    const tenant = await failTwice();
    const turns = await listTurns(tenant);
    const [last, first] = turns.filter(({ status }) => status === 'failed');
    expect(await retry({ tenant: tenant.id, id: first?.contact_id })).toMatchObject({ turns: 2 });
    expect(await retry({ id: first?.id })).toMatchObject({ turns: 1, tenants: [{ tenantId: tenant.id, turns: 1 }] });
    isBroken = false;
    const path = (id: string | undefined): string => `/ops/api/turns/${id ?? ''}/retry?tenant=${tenant.id}`;
    const answer = await operate(path(last?.id), { method: 'POST' });
    expect(answer.status).toBe(202);
    const again = TurnView.parse(await answer.json());
    expect(again).toMatchObject({ contact_id: last?.contact_id, agent: 'cs' });
    expect(await (await operate(path(last?.id), { method: 'POST' })).json()).toMatchObject({ id: again.id });
    await eventually(async () => (await listTurns(tenant)).some(({ id, status }) => id === again.id && status === 'done'));
    const done = turns.find(({ status }) => status === 'done');
    expect((await operate(path(done?.id), { method: 'POST' })).status).toBe(409);
    expect((await operate(path('t_0'), { method: 'POST' })).status).toBe(404);
    const audit = z.array(AuditEntry).parse(await (await gateway.ask(tenant.admin, '/api/audit')).json());
    expect(audit.filter(({ act }) => act === 'turn.retry').map(({ target }) => target)).toEqual([last?.id]);
  });

  it('leaves out a suspended tenant', async () => {
    const tenant = await failTwice();
    await gateway.tenants.setSuspended(tenant.id, true);
    const { skipped } = await eventually(async () => {
      const found = await retry({ tenant: tenant.id });
      return found.turns === 0 ? found : undefined;
    });
    expect(skipped).toEqual([{ reason: 'suspended', turns: 2 }]);
    await gateway.tenants.setSuspended(tenant.id, false);
  });
});

describe('the operators’ cancel', () => {
  it('ends a turn that runs, without its tenant’s name, and goes on record', async () => {
    const tenant = await gateway.tenant();
    const before = gateway.script;
    const begun = gate();
    gateway.script = async ({ signal, turn }) => {
      begun.open();
      if (turn.tenantId === tenant.id) await untilAborted(signal);
    };
    const stream = await gateway.open(tenant.cs, '/api/cs', { method: 'POST', body: { message: 'hello' } });
    await begun.opened;
    const [turn] = await listTurns(tenant);
    const path = `/ops/api/turns/${turn?.id ?? ''}/cancel`;
    expect((await operate(`${path}?reason=${'x'.repeat(201)}`, { method: 'POST' })).status).toBe(400);
    expect((await operate(`${path}?reason=${encodeURIComponent('It asks itself.')}`, { method: 'POST' })).status).toBe(202);
    await stream.text();
    expect(await listTurns(tenant)).toMatchObject([{ status: 'cancelled' }]);
    gateway.script = before;
    const audit = z.array(AuditEntry).parse(await (await operate('/ops/api/audit?limit=1')).json());
    expect(audit).toMatchObject([{ act: 'turn.cancel', tenantId: tenant.id, target: turn?.id, reason: 'It asks itself.' }]);
    expect((await operate(path, { method: 'POST' })).status).toBe(202);
    const unexplained = z.array(AuditEntry).parse(await (await operate('/ops/api/audit?limit=1')).json());
    expect(unexplained).toMatchObject([{ act: 'turn.cancel', target: turn?.id }]);
    expect(unexplained[0]?.reason).toBeUndefined();
    expect((await operate('/ops/api/turns/t_0/cancel', { method: 'POST' })).status).toBe(404);
    expect((await operate(`/ops/api/turns/t_0/cancel?tenant=${tenant.id}`, { method: 'POST' })).status).toBe(404);
  });
});
