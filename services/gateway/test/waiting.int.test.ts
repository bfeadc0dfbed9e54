import { describe, expect, it } from '@jest/globals';
import { MINUTE_MS, routes } from '@concierge/contract';
import { connectRedis } from '@concierge/runtime';
import { eventually, gate, silentLog } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { LoadSeries, WaitingRoom } from '@concierge/turn';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const opsToken = 'operators-token-of-this-test';
const asOperator = { headers: { Authorization: `Bearer ${opsToken}` } };

let gateway: TestGateway;
let tenant: TestTenant;
const held = gate();

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
  stack.defer(() => held.open());
  tenant = await gateway.tenant();
  gateway.script = async () => held.opened;
});

const { getHealth, getOverview, listWaiting, listWorkers, queues, signIn, signInPage, signOut } = routes;

async function read<Json>(path: string, schema: { parse(given: unknown): Json }): Promise<Json> {
  const response = await gateway.ask(undefined, path, asOperator);
  expect(response.status).toBe(200);
  return schema.parse(await response.json());
}

async function send(token: string): Promise<Response> {
  return fetch(`${gateway.url}${signIn.path}`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }).toString(),
  });
}

describe('what waits', () => {
  it('is listed for operators, with why, since when and behind whom', async () => {
    const ask = async (): Promise<Response> =>
      gateway.open(tenant.cs, '/api/cs', { method: 'POST', body: { message: 'hello', sender: 'ann' } });
    const running = await ask();
    const waiting = await ask();
    const page = await eventually(async () => {
      const found = await read(`${listWaiting.path}?tenant=${tenant.id}`, listWaiting.answers[200].json);
      return found.waiting[0]?.reason === 'own_session' && found.waiting[0].why.endsWith('which runs.') ? found : undefined;
    });
    expect(page).toMatchObject({ isWhole: true, waiting: [{ tenantId: tenant.id, agent: 'cs', turns: 1, startsWhen: 'That turn ends.' }] });
    expect(page.reasons).toContainEqual(expect.objectContaining({ reason: 'own_session', turns: 1 }));
    expect(page.tenants).toEqual([
      {
        tenantId: tenant.id,
        turns: 1,
        oldestSeconds: page.waiting[0]?.waitedSeconds,
        running: 1,
        places: expect.any(Number),
        reasons: [{ reason: 'own_session', turns: 1, oldestSeconds: page.waiting[0]?.waitedSeconds }],
        recent: Array.from({ length: 60 }, () => 0),
      },
    ]);
    const turnId = page.waiting[0]?.turnId ?? '';
    const turn = await (await gateway.ask(tenant.admin, `/api/turns/${turnId}`)).json();
    expect(turn).toMatchObject({ status: 'waiting', waitsFor: { reason: 'own_session', behind: page.waiting[0]?.behind } });
    const listed = await (await gateway.ask(tenant.admin, '/api/turns?status=waiting')).json();
    expect(listed).toMatchObject([{ id: turnId, waitsFor: { reason: 'own_session', isBehindRunning: true } }]);
    // A worker that stood still with its machine is not heard of for a moment.
    const overview = await eventually(async () => {
      const found = await read(getOverview.path, getOverview.answers[200].json);
      return found.workers.running > 0 ? found : undefined;
    });
    expect(overview).toMatchObject({ summary: expect.stringMatching(/^All well: /u), longest: null, workers: { running: 1 } });
    const workers = await eventually(async () => {
      const found = await read(listWorkers.path, listWorkers.answers[200].json);
      return found[0]?.running === 1 ? found : undefined;
    });
    expect(workers[0]).toMatchObject({ state: 'running', turns: [page.waiting[0]?.behind] });
    held.open();
    await Promise.all([running.text(), waiting.text()]);
  });

  it('comes with how much of its tenant waited in each minute of the last hour', async () => {
    const flood = await gateway.tenant();
    const inTurn = gate();
    gateway.script = async () => inTurn.opened;
    const ask = async (): Promise<Response> =>
      gateway.open(flood.cs, '/api/cs', { method: 'POST', body: { message: 'hello', sender: 'ben' } });
    const asked = [await ask(), await ask()];
    const redis = connectRedis({ url: gateway.redis.url, role: 'worker', log: silentLog });
    await using closing = new AsyncDisposableStack();
    closing.defer(() => redis.disconnect());
    const series = new LoadSeries(redis);
    const look = await eventually(async () => {
      const found = await new WaitingRoom(redis).look();
      return found.waiting.some(({ tenantId }) => tenantId === flood.id) ? found : undefined;
    });
    await series.add({ ...look, waiting: [...look.waiting, ...look.waiting], atMs: look.atMs - 5 * MINUTE_MS });
    await series.add(look);
    const waited = await eventually(async () => {
      const { tenants } = await read(`${listWaiting.path}?tenant=${flood.id}`, listWaiting.answers[200].json);
      const minutes = (tenants[0]?.recent ?? []).flatMap((turns, minute) => (turns === 0 ? [] : [{ turns, minute }]));
      return minutes.length === 2 ? minutes : undefined;
    });
    expect(waited.map(({ turns }) => turns)).toEqual([2, 1]);
    expect((waited[1]?.minute ?? 0) - (waited[0]?.minute ?? 0)).toBe(5);
    inTurn.open();
    await Promise.all(asked.map(async (response) => response.text()));
  });

  it('is not for who has no operators’ token, nor behind a cursor that is none', async () => {
    for (const { path } of [listWaiting, listWorkers, getOverview, getHealth]) {
      expect((await gateway.ask(undefined, path)).status).toBe(401);
      expect((await gateway.ask(tenant.admin, path)).status).toBe(401);
    }
    expect((await gateway.ask(undefined, `${listWaiting.path}?cursor=x`, asOperator)).status).toBe(400);
  });
});

describe('the health of the service', () => {
  it('has the checks of /readyz, and the room that is left', async () => {
    // A worker that stood still with its machine is not heard of for a moment, and its clock was read in that pause.
    const health = await eventually(async () => {
      const answer = await read(getHealth.path, getHealth.answers[200].json);
      const isWell = answer.findings.every(({ name, status }) => status === 'ok' || !['clock', 'workers'].includes(name));
      return answer.status === 'ready' && isWell ? answer : undefined;
    });
    expect(health).toMatchObject({ status: 'ready', checks: { redis: { ok: true }, workers: { ok: true } } });
    expect(health.disk?.freeBytes).toBeGreaterThan(0);
    expect(health.redis?.usedBytes).toBeGreaterThan(0);
    const found = Object.fromEntries(health.findings.map(({ name, status }) => [name, status]));
    expect(Object.keys(found)).toEqual(['redis', 'clock', 'index', 'connections', 'workers', 'providers', 'sandbox', 'email', 'versions']);
    expect(found).toMatchObject({ index: 'ok', workers: 'ok', clock: 'ok' });
    const said = Object.fromEntries(health.findings.map(({ name, said: sentences }) => [name, sentences]));
    expect(said).toMatchObject({
      clock: [{ code: 'clocks_agree', params: { seconds: '2' } }],
      workers: [{ code: 'workers_alive', params: { count: '1' } }],
      email: [{ code: 'no_cron_to_ask', params: {} }],
    });
  });
});

describe('the sign-in of operators', () => {
  it('is a page without scripts that sends its form to itself', async () => {
    const page = await gateway.ask(undefined, signInPage.path);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none';.*form-action 'self'/u);
    const html = await page.text();
    expect(html).toContain(`<form method="post" action="${signIn.path}">`);
    expect(html).not.toContain('<script');
  });

  it('exchanges the token for a cookie, with which a browser opens the queue dashboard', async () => {
    const refused = await gateway.ask(undefined, queues.path);
    expect(refused.status).toBe(401);
    expect(await refused.text()).toContain(signInPage.path);
    const answer = await send(opsToken);
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(queues.path);
    const cookie = answer.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^concierge_ops=[^;]+; Path=\/ops; Max-Age=43200; HttpOnly; SameSite=Strict$/u);
    expect(cookie).not.toContain(opsToken);
    const headers = { Cookie: cookie.split(';', 1)[0] ?? '' };
    expect((await gateway.ask(undefined, queues.path, { headers })).status).toBe(200);
    expect((await gateway.ask(undefined, getOverview.path, { headers })).status).toBe(200);
  });

  it('refuses another token, and cookies that were made up or are too old', async () => {
    const answer = await send('another');
    expect(answer.status).toBe(401);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(await answer.text()).toContain('That is not the token.');
    for (const value of ['1.aa', `9999999999.${'a'.repeat(64)}`, opsToken])
      expect((await gateway.ask(undefined, queues.path, { headers: { Cookie: `concierge_ops=${value}` } })).status).toBe(401);
  });

  it('answers the console’s own pages, which send JSON, with a status alone', async () => {
    const ask = async (body: string): Promise<Response> =>
      gateway.ask(undefined, signIn.path, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
    const answer = await ask(JSON.stringify({ token: opsToken }));
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    const cookie = (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
    expect((await gateway.ask(undefined, getOverview.path, { headers: { Cookie: cookie } })).status).toBe(200);
    const wrong = await ask(JSON.stringify({ token: 'another' }));
    expect([wrong.status, await wrong.json()]).toEqual([401, expect.objectContaining({ code: 'invalid_key' })]);
    for (const body of ['', '{}', '{"token": 1}']) expect((await ask(body)).status).toBe(400);
  });

  it('has a browser forget the sign-in, for a page of the same origin', async () => {
    const leave = async (site: string): Promise<Response> =>
      gateway.ask(undefined, signOut.path, { method: 'POST', headers: { 'Sec-Fetch-Site': site } });
    const answer = await leave('same-origin');
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringMatching(/^concierge_ops=; Path=\/ops; Max-Age=0/u),
    ]);
    expect((await leave('cross-site')).headers.get('set-cookie')).toBeNull();
  });
});
