import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { AuditEntry, CreatedKey, CreatedTenant, ImportedTenant, Problem, routes, type Route } from '@concierge/contract';
import { eventually, gate } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type Asked } from './test-gateway.ts';

const opsToken = 'a-token-of-operators';
let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
});

async function operate(path: string, init: Asked = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${opsToken}`);
  return gateway.ask(undefined, `/ops/api${path}`, { ...init, headers });
}

async function create(id: string, more: object = {}): Promise<CreatedTenant> {
  const response = await operate('/tenants', { method: 'POST', body: { id, ...more } });
  expect(response.status).toBe(201);
  return CreatedTenant.parse(await response.json());
}

async function readCode(response: Response): Promise<string> {
  return Problem.parse(await response.json()).code;
}

async function readAudit(path: string, key?: string): Promise<string[]> {
  const response = key === undefined ? await operate(path) : await gateway.ask(key, path);
  const entries = z.array(AuditEntry).parse(await response.json());
  return entries.map(({ by, act, target }) => [by.kind, act, target].join(' '));
}

describe('the operators’ API', () => {
  it.each(
    Object.values<Route>(routes)
      .filter(({ path }) => path.startsWith('/ops/api/'))
      .map((route) => [route.id, route] as const),
  )('%s wants the operators’ token', async (_id, { path, method }) => {
    const tenant = await gateway.tenant();
    const ask = async (headers: Record<string, string>): Promise<string> =>
      readCode(await gateway.ask(undefined, path.replaceAll(/\{\w+\}/gu, tenant.id), { method: method.toUpperCase(), headers }));
    expect(await ask({})).toBe('missing_key');
    expect(await ask({ Authorization: `Bearer ${tenant.admin}` })).toBe('invalid_key');
  });

  it.each(['0-0', '00-000', '18446744073709551616-0', '1-18446744073709551616', '1'])(
    'refuses a cursor of log lines that no page has given: %s',
    async (cursor) => {
      const refused = await operate(`/logs?cursor=${cursor}`);
      expect([refused.status, await readCode(refused)]).toEqual([400, 'invalid_request']);
    },
  );

  it('reads log lines behind any cursor that Redis can give', async () => {
    for (const cursor of ['0-1', '1-0', '9999999999999999999-0']) expect((await operate(`/logs?cursor=${cursor}`)).status).toBe(200);
  });

  it('makes a tenant whose keys work, lists it, shows it, and changes plan and limits', async () => {
    const { keys } = await create('first', { plan: 'preview', name: 'First & Co', limits: { requestsPerHour: 9 } });
    expect((await gateway.ask(keys.admin, '/api/tenant')).status).toBe(200);
    expect(await readCode(await operate('/tenants', { method: 'POST', body: { id: 'first' } }))).toBe('conflict');
    expect(await (await operate('/tenants/first')).json()).toMatchObject({
      tenantId: 'first',
      plan: 'preview',
      name: 'First & Co',
      suspended: false,
      settings: { limits: { requestsPerHour: 9 } },
      activeKeys: 2,
      waitingTurns: 0,
    });
    const changed = await operate('/tenants/first', {
      method: 'PATCH',
      body: { plan: 'standard', limits: { requestsPerHour: null, memoryBytes: 5000, usdPerDay: 2.5 } },
    });
    expect(await changed.json()).toMatchObject({ plan: 'standard', settings: { limits: { memoryBytes: 5000, usdPerDay: 2.5 } } });
    expect(await readCode(await operate('/tenants/first', { method: 'PATCH', body: { limits: { memoryBytes: -1 } } }))).toBe(
      'invalid_request',
    );
    expect(await readCode(await operate('/tenants/nobody'))).toBe('not_found');
  });

  it('sets, lists and removes a tenant’s own keys for model providers, and shows no key again', async () => {
    const tenant = await gateway.tenant();
    const path = `/tenants/${tenant.id}/model-keys`;
    const apiKey = `sk-${randomBytes(16).toString('hex')}`;
    const set = await operate(`${path}/openai`, { method: 'PUT', body: { apiKey } });
    const shown = [{ provider: 'openai', hint: apiKey.slice(-4), problem: null }];
    expect(await set.clone().json()).toMatchObject(shown[0] ?? {});
    const own = await gateway.ask(tenant.admin, '/api/model-keys');
    expect(await own.clone().json()).toMatchObject(shown);
    for (const answer of [set, own, await operate(path), await operate('/audit')]) expect(await answer.text()).not.toContain(apiKey);
    const refused = await operate(`${path}/openai`, { method: 'PUT', body: { apiKey: 'with a space in it' } });
    expect([refused.status, (await refused.text()).includes('with a space')]).toEqual([400, false]);
    expect((await gateway.ask(tenant.cs, '/api/model-keys')).status).toBe(403);
    expect((await gateway.ask(tenant.read, '/api/model-keys/openai', { method: 'PUT', body: { apiKey } })).status).toBe(403);
    const replaced = await gateway.ask(tenant.admin, '/api/model-keys/openai', { method: 'PUT', body: { apiKey: 'short-key' } });
    expect(await replaced.json()).toMatchObject({ hint: '' });
    expect((await operate(`${path}/openai`, { method: 'DELETE' })).status).toBe(204);
    expect(await readCode(await operate(`${path}/openai`, { method: 'DELETE' }))).toBe('not_found');
    expect(await (await operate(path)).json()).toEqual([]);
    expect(await readAudit('/api/audit', tenant.admin)).toEqual([
      'operator model-key.remove openai',
      'key model-key.set openai',
      'operator model-key.set openai',
    ]);
  });

  it('takes a key for no provider that the providers file does not have', async () => {
    const tenant = await gateway.tenant();
    const file = { default: 'openai/gpt', providers: { openai: { baseUrl: 'https://api.example.com/v1' } } };
    const providersFile = join(gateway.dataDir, 'providers.json');
    await writeFile(providersFile, JSON.stringify(file));
    const put = async (provider: string): Promise<Response> =>
      gateway.ask(tenant.admin, `/api/model-keys/${provider}`, { method: 'PUT', body: { apiKey: 'sk-long-enough' } });
    const refused = await put('elsewhere');
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('there are: openai')]);
    expect((await put('openai')).status).toBe(200);
    await rm(providersFile);
  });

  it('lists all tenants, page by page', async () => {
    for (const id of ['page-a', 'page-b', 'page-c']) await create(id);
    const seen: string[] = [];
    let next: string | undefined = '/tenants?limit=2';
    while (next !== undefined) {
      const response = await operate(next);
      seen.push(
        ...z
          .array(z.object({ tenantId: z.string() }))
          .parse(await response.json())
          .map(({ tenantId }) => tenantId),
      );
      next = /<\/ops\/api([^>]+)>/u.exec(response.headers.get('link') ?? '')?.[1];
    }
    expect(seen).toEqual(seen.toSorted());
    expect(seen).toEqual(expect.arrayContaining(['page-a', 'page-b', 'page-c']));
  });

  it('suspends and resumes: keys are refused and say why, what was accepted is answered afterwards', async () => {
    const { keys } = await create('paused');
    const release = gate();
    gateway.script = async (run) => {
      await release.opened;
      await sayItBack(run);
    };
    const stream = await gateway.open(keys.admin, '/api/admin', { method: 'POST', body: { message: 'before' } });
    await stream.body?.cancel();
    expect(await (await operate('/tenants/paused/suspend', { method: 'POST' })).json()).toMatchObject({ suspended: true });
    await eventually(
      async () =>
        (await readCode(await gateway.ask(keys.admin, '/api/admin', { method: 'POST', body: { message: 'x' } }))) === 'tenant_suspended',
    );
    expect(await (await operate('/tenants/paused')).json()).toMatchObject({ suspended: true, waitingTurns: 1 });
    expect(await (await operate('/tenants/paused/resume', { method: 'POST' })).json()).toMatchObject({ suspended: false });
    await eventually(async () => (await gateway.ask(keys.admin, '/api/tenant')).status === 200);
    release.open();
    await eventually(async () => {
      const turns = z.array(z.object({ status: z.string() })).parse(await (await gateway.ask(keys.admin, '/api/turns')).json());
      return turns.length === 1 && turns[0]?.status === 'done';
    });
  });

  it('makes, lists, rotates and revokes keys', async () => {
    await create('keyed');
    const made = CreatedKey.parse(
      await (await operate('/tenants/keyed/keys', { method: 'POST', body: { scopes: ['read'], label: 'board' } })).json(),
    );
    expect((await gateway.ask(made.key, '/api/tenant')).status).toBe(200);
    const rotated = CreatedKey.parse(await (await operate(`/tenants/keyed/keys/${made.id}/rotate`, { method: 'POST' })).json());
    expect((await operate(`/tenants/keyed/keys/${rotated.id}`, { method: 'DELETE' })).status).toBe(204);
    for (const { key } of [made, rotated]) await eventually(async () => (await gateway.ask(key, '/api/tenant')).status === 401);
    const views = z.array(z.looseObject({ label: z.string() })).parse(await (await operate('/tenants/keyed/keys')).json());
    expect(views.map(({ label }) => label)).toEqual(['admin', 'cs', 'board', 'board']);
    expect(await readCode(await operate('/tenants/keyed/keys/k_0000000000000000', { method: 'DELETE' }))).toBe('not_found');
  });

  it('closes what it has opened when the client of an export goes', async () => {
    const { id, scope } = await gateway.tenant();
    const folder = join(scope.root, 'workspace', 'large');
    await mkdir(folder, { recursive: true });
    // More than a connection takes while nothing is read.
    await writeFile(join(folder, 'bytes'), randomBytes(48 * 1024 * 1024));
    const opened = async (): Promise<string[]> => {
      const names = await readdir('/proc/self/fd');
      const paths = await Promise.all(names.map(async (name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
      return paths.filter((path) => path.startsWith(folder));
    };
    const headers = { Authorization: `Bearer ${opsToken}` };
    const exported = await fetch(`${gateway.url}/ops/api/tenants/${id}/export`, { headers });
    await eventually(async () => (await opened()).length > 0);
    await exported.body?.cancel();
    await eventually(async () => (await opened()).length === 0);
    expect((await gateway.ask(undefined, '/livez')).status).toBe(200);
  });

  it('answers HEAD of an export without reading anything, and puts nothing on record', async () => {
    await create('asked');
    const head = await operate('/tenants/asked/export', { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/gzip']);
    expect(head.headers.get('content-disposition')).toBe('attachment; filename="asked.tar.gz"');
    expect((await operate('/tenants/nothing/export', { method: 'HEAD' })).status).toBe(404);
    expect(await readAudit('/audit?tenant=asked')).toEqual(['operator tenant.create ']);
  });

  it('exports a tenant, deletes it, and imports it again, with its keys and its log', async () => {
    const { keys } = await create('moving');
    await gateway.ask(keys.admin, '/api/files/notes.md', { method: 'PUT', body: 'kept', headers: { 'Content-Type': 'text/plain' } });
    const exported = await operate('/tenants/moving/export');
    expect(exported.headers.get('content-type')).toBe('application/gzip');
    const body = Buffer.from(await exported.arrayBuffer());
    expect(await (await operate('/tenants/moving', { method: 'DELETE' })).json()).toEqual({ tenantId: 'moving', deleted: true, notes: [] });
    await eventually(async () => (await gateway.ask(keys.admin, '/api/tenant')).status === 401);
    const send = { method: 'POST', body, headers: { 'Content-Type': 'application/gzip' } };
    const back = await operate('/import', send);
    expect(back.status).toBe(201);
    expect(ImportedTenant.parse(await back.json())).toMatchObject({ tenantId: 'moving', notes: [] });
    await eventually(async () => (await gateway.ask(keys.admin, '/api/files/notes.md')).status === 200);
    expect(await readCode(await operate('/import', send))).toBe('conflict');
    const copy = ImportedTenant.parse(await (await operate('/import?as=moved', send)).json());
    expect((await gateway.ask(copy.keys?.admin, '/api/files/notes.md')).status).toBe(200);
    expect((await readAudit('/audit?tenant=moving')).toSorted()).toEqual([
      expect.stringMatching(/^key file.write notes.md$/u),
      'operator tenant.create ',
      'operator tenant.export ',
      'operator tenant.import ',
    ]);
  });

  it('refuses what is no archive, and leaves nothing of it', async () => {
    const send = async (body: string, type = 'application/gzip'): Promise<string> =>
      readCode(await operate('/import', { method: 'POST', body, headers: { 'Content-Type': type } }));
    expect(await send('not an archive')).toBe('invalid_request');
    expect(await send('{}', 'application/json')).toBe('unsupported_media_type');
    expect(await send('')).toBe('invalid_request');
  });
});

describe('the audit log', () => {
  it('has what keys changed, for the owner, and what operators did, for both; without what was written', async () => {
    const { keys } = await create('audited');
    const admin = async (method: string, path: string, body?: unknown): Promise<Response> =>
      gateway.ask(keys.admin, `/api${path}`, { method, body });
    const text = { headers: { 'Content-Type': 'text/plain' } };
    await gateway.ask(keys.admin, '/api/files/notes.md', { method: 'PUT', body: 'a secret word', ...text });
    await admin('PATCH', '/tenant', { name: 'Another' });
    const { id } = CreatedKey.parse(await (await admin('POST', '/keys', { scopes: ['cs'] })).json());
    await admin('DELETE', `/keys/${id}`);
    const schedule = z
      .object({ id: z.string() })
      .parse(await (await admin('POST', '/cron', { name: 'A', message: 'secret', schedule: { every: '1h' } })).json());
    await admin('DELETE', `/cron/${schedule.id}`);
    // What is refused was not done.
    await admin('DELETE', '/cron/nothing');
    await operate('/tenants/audited', { method: 'PATCH', body: { plan: 'preview' } });
    const expected = [
      'operator tenant.update plan',
      `key schedule.delete ${schedule.id}`,
      `key schedule.create ${schedule.id}`,
      `key key.revoke ${id}`,
      `key key.create ${id}`,
      'key settings.update ',
      'key file.write notes.md',
      'operator tenant.create ',
    ];
    expect(await readAudit('/api/audit', keys.admin)).toEqual(expected);
    expect(await readAudit('/audit?tenant=audited')).toEqual(expected);
    const response = await gateway.ask(keys.admin, '/api/audit?limit=3');
    expect(await response.clone().text()).not.toContain('secret');
    expect(response.headers.get('link')).toContain('cursor=');
    const operators = z.array(AuditEntry).parse(await (await operate('/audit?limit=100')).json());
    expect(operators.filter(({ tenantId }) => tenantId === 'audited').map(({ act }) => act)).toEqual(['tenant.update', 'tenant.create']);
    expect(operators.every(({ requestId }) => requestId !== null)).toBe(true);
    expect(await readCode(await operate('/audit?tenant=nobody'))).toBe('not_found');
  });
});
