import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { SessionListItem, SessionView, Skill, TurnView, UploadRef, UsageReport } from '@concierge/contract';
import { eventually, onePixelPng, smallPdf } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, untilListed, type Tenant } from './fixture.ts';

let contract: ContractSystem;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
});

const SessionList = z.array(SessionListItem);
const TurnList = z.array(TurnView);

async function withSessions(count: number): Promise<Tenant> {
  const tenant = await contract.tenant();
  for (let index = 0; index < count; index += 1) {
    const answer = await tenant
      .as('admin')
      .ask(index % 2 === 0 ? 'admin' : 'cs', { message: `[[say:hello ${String(index)}]] number ${String(index)}` });
    expect(answer.status).toBe(200);
  }
  await untilListed(tenant, count);
  return tenant;
}

/** The next page's path, from the Link header (RFC 8288). */
function readNext(headers: Headers): string | undefined {
  return /<([^>]+)>; rel="next"/u.exec(headers.get('link') ?? '')?.[1]?.replace(/^https?:\/\/[^/]+/u, '');
}

describe('GET /api/sessions', () => {
  promise(
    ['SI/get-api-sessions/1', 'SI/get-api-sessions/5', 'SI/session/2', 'SI/session/3', 'C/4/1', 'SI/get-api-sessions/4'],
    'lists sessions newest first, page by page, of one agent when asked',
    async () => {
      const tenant = await withSessions(5);
      const client = tenant.as('read');
      const all = SessionList.parse((await client.get('/api/sessions')).json());
      expect(all).toHaveLength(5);
      const times = all.map(({ updatedAt }) => updatedAt);
      expect(times).toEqual(times.toSorted().toReversed());
      expect(all[0]).toMatchObject({ agent: 'admin', channel: 'web', messageCount: 2, title: expect.stringContaining('number 4') });
      const paged: string[] = [];
      for (let path: string | undefined = '/api/sessions?limit=2'; path !== undefined;) {
        const page = await client.get(path);
        paged.push(...SessionList.parse(page.json()).map(({ id }) => id));
        path = readNext(page.headers);
      }
      expect(paged).toEqual(all.map(({ id }) => id));
      const cs = SessionList.parse((await client.get('/api/sessions?agent=cs')).json());
      expect(cs.map(({ agent }) => agent)).toEqual(['cs', 'cs']);
      expect((await client.get('/api/sessions?agent=nobody')).status).toBe(400);
    },
  );

  promise(['SI/get-api-sessions/3', 'SI/limits/2'], 'takes a limit of 1 to 100', async () => {
    const tenant = await contract.tenant();
    for (const limit of ['0', '101', '-1', '1.5', 'x', '']) {
      expect((await tenant.as('admin').get(`/api/sessions?limit=${limit}`)).problem()).toMatchObject({
        status: 400,
        errors: [{ path: 'limit' }],
      });
    }
    for (const limit of ['1', '100']) expect((await tenant.as('admin').get(`/api/sessions?limit=${limit}`)).status).toBe(200);
  });

  promise(['SI/limits/2'], 'lists 25 by default', async () => {
    const tenant = await contract.tenant();
    const scope = await contract.system.scope(tenant.tenantId);
    await tenant.as('admin').ask('cs', { message: 'x', sender: 's' });
    await untilListed(tenant, 1);
    const first = SessionList.parse((await tenant.as('admin').get('/api/sessions')).json())[0];
    const session = await scope.sessions.load(first?.id ?? '');
    if (session === undefined) throw new Error('no session');
    for (let index = 0; index < 30; index += 1)
      await scope.sessions.publish({ ...session, id: index.toString(16).padStart(32, '0'), revision: 1, turns: [] });
    await scope.reindex();
    expect(SessionList.parse((await tenant.as('admin').get('/api/sessions')).json())).toHaveLength(25);
  });
});

describe('one session', () => {
  promise(['C/4/2', 'SI/session/4'], 'is read whole and deleted', async () => {
    const tenant = await withSessions(1);
    const [item] = SessionList.parse((await tenant.as('admin').get('/api/sessions')).json());
    const path = `/api/sessions/${item?.id ?? ''}`;
    const view = SessionView.parse((await tenant.as('read').get(path)).json());
    expect(view.messages.map(({ role, text }) => [role, text])).toEqual([
      ['user', '[[say:hello 0]] number 0'],
      ['assistant', 'hello 0'],
    ]);
    const file = JSON.parse(
      await readFile(join(contract.system.dataDir, 'tenants', tenant.tenantId, 'sessions', `${view.id}.json`), 'utf8'),
    );
    expect(file).toMatchObject({ id: view.id, messages: [{ role: 'user' }, { role: 'assistant' }] });
    // The file of an accepted turn is removed after its answer.
    await eventually(async () => (await (await contract.system.scope(tenant.tenantId)).busySessions()).size === 0);
    expect((await tenant.as('admin').request(path, { method: 'DELETE' })).status).toBe(204);
    expect((await tenant.as('admin').get(path)).problem()).toMatchObject({ status: 404, code: 'not_found' });
    expect(SessionList.parse((await tenant.as('admin').get('/api/sessions')).json())).toEqual([]);
    expect((await tenant.as('admin').request(path, { method: 'DELETE' })).status).toBe(404);
  });
});

describe('skills', () => {
  promise(
    [
      'SI/get-api-skills/1',
      'SI/post-api-skills-reindex/1',
      'C/4/3',
      'SI/skill/1',
      'SI/skill/2',
      'SI/skill/3',
      'SI/skill/4',
      'SI/skill/5',
      'SI/skill/6',
    ],
    'come from each SKILL.md and are found after a reindex',
    async () => {
      const tenant = await contract.tenant();
      const client = tenant.as('admin');
      const before = z.array(Skill).parse((await client.get('/api/skills')).json());
      expect(before.length).toBeGreaterThan(0);
      const put = async (name: string, text: string): Promise<number> =>
        (
          await client.request(`/api/files/skills/${name}/SKILL.md`, {
            method: 'PUT',
            rawBody: text,
            headers: { 'content-type': 'text/markdown' },
          })
        ).status;
      expect(
        await put('returns', '---\nname: returns\ndescription: How to take goods back.\ntrigger: return\n---\nAsk for the receipt.'),
      ).toBe(201);
      expect(await put('broken', '---\nname: other\ndescription: x\n---\n')).toBe(201);
      const report = (await client.request('/api/skills/reindex', { method: 'POST' })).json();
      expect(report).toEqual({ indexed: before.length + 1, invalid: [{ path: 'skills/broken/SKILL.md', reason: expect.any(String) }] });
      const after = z.array(Skill).parse((await tenant.as('read').get('/api/skills')).json());
      expect(after).toContainEqual({
        name: 'returns',
        description: 'How to take goods back.',
        trigger: 'return',
        path: 'skills/returns/SKILL.md',
      });
      const answer = await client.ask('admin', { message: '[[tools:load_skill {"name":"returns"}]] [[say:ok]]' });
      expect(answer.text).toContain('Ask for the receipt.');
    },
  );
});

describe('uploads', () => {
  promise(
    ['SI/post-api-uploads/1', 'C/4/4', 'SI/message-input/5', 'SI/post-api-admin/9', 'C/3/3'],
    'become references whose content reaches the model',
    async () => {
      const tenant = await contract.tenant();
      const client = tenant.as('cs');
      const files = [
        { name: 'pixel.bin', bytes: onePixelPng, type: 'application/octet-stream' },
        { name: 'notes.txt', bytes: Buffer.from('the password is heron'), type: 'text/plain' },
        { name: 'letter.pdf', bytes: smallPdf('Dear Concierge'), type: 'application/pdf' },
      ];
      const uploaded = await client.upload(files);
      expect(uploaded.status).toBe(201);
      const refs = z.array(UploadRef).parse(uploaded.json());
      expect(refs.map(({ name, type, size }) => ({ name, type, size }))).toEqual([
        { name: 'pixel.bin', type: 'image/png', size: onePixelPng.length },
        { name: 'notes.txt', type: 'text/plain', size: 21 },
        { name: 'letter.pdf', type: 'application/pdf', size: files[2]?.bytes.length },
      ]);
      const [image, text, pdf] = refs;
      const answer = await client.ask('cs', { message: 'see-attached', attachments: [image, text?.id, pdf] });
      expect(answer.status).toBe(200);
      const sent = JSON.stringify(contract.model.requests.findLast(({ userText }) => userText.includes('see-attached'))?.raw);
      expect(sent).toContain('the password is heron');
      expect(sent).toContain('Dear Concierge');
      expect(sent).toContain(`data:image/png;base64,${Buffer.from(onePixelPng).toString('base64')}`);
      const contact = z.object({ contact_id: z.string() }).parse(answer.json()).contact_id;
      const file = await readFile(join(contract.system.dataDir, 'tenants', tenant.tenantId, 'sessions', `${contact}.json`), 'utf8');
      expect(file).toContain(image?.id);
      expect(file).not.toContain(Buffer.from(onePixelPng).toString('base64'));
    },
  );

  promise(['C/3/3', 'C/4/4'], 'are limited in number and kind, and are the tenant’s own', async () => {
    const tenant = await contract.tenant();
    const other = await contract.tenant();
    const client = tenant.as('admin');
    const text = { name: 'a.txt', bytes: Buffer.from('a') };
    const refs = z.array(UploadRef).parse((await client.upload(Array.from({ length: 10 }, () => text))).json());
    expect((await client.ask('admin', { message: 'x', attachments: [...refs, ...refs.slice(0, 1)] })).status).toBe(400);
    expect((await other.as('admin').ask('admin', { message: 'x', attachments: refs.slice(0, 1) })).status).toBe(400);
    expect((await client.upload(Array.from({ length: 11 }, () => text))).status).toBe(400);
    expect((await client.upload([])).status).toBe(400);
    expect((await client.upload([text], 'other')).status).toBe(400);
    expect((await client.upload([{ name: 'x.zip', bytes: Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0, 0]) }])).problem()).toMatchObject({
      status: 415,
      code: 'unsupported_media_type',
    });
    expect((await client.upload([{ name: 'big.txt', bytes: Buffer.alloc(10 * 1024 * 1024 + 1, 'a') }])).problem()).toMatchObject({
      status: 413,
      code: 'too_large',
    });
    expect((await client.upload([{ name: 'full.txt', bytes: Buffer.alloc(10 * 1024 * 1024, 'a') }])).status).toBe(201);
  });
});

describe('turns', () => {
  promise(['C/4/5'], 'show state, timings, attempts, usage and steps', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    const answer = await client.ask('admin', { message: '[[tools:list_files {}]] [[say:done]]' });
    const { turnId } = z.object({ turnId: z.string() }).parse(answer.json());
    const turn = TurnView.parse((await tenant.as('read').get(`/api/turns/${turnId}`)).json());
    expect(turn).toMatchObject({ id: turnId, status: 'done', attempts: 1, finishReason: 'stop', agent: 'admin', error: null });
    expect(turn.steps?.map(({ kind, name }) => [kind, name])).toEqual([
      ['model', 'test/scripted'],
      ['tool', 'list_files'],
      ['model', 'test/scripted'],
    ]);
    const times = [turn.acceptedAt, turn.startedAt, turn.firstTextAt, turn.endedAt].map((time) => Date.parse(time ?? ''));
    expect(times).toEqual(times.toSorted((left, right) => left - right));
    expect(turn.usage.inputTokens).toBeGreaterThan(0);
    await client.ask('admin', { message: '[[fail:400 x9]]' });
    await untilListed(tenant, 2);
    expect(TurnList.parse((await client.get('/api/turns?status=failed')).json())).toMatchObject([
      { status: 'failed', error: { code: 'provider_error' } },
    ]);
    expect(TurnList.parse((await client.get('/api/turns')).json())).toHaveLength(2);
    const { contact_id: contactId } = turn;
    expect(TurnList.parse((await client.get(`/api/turns?contact_id=${contactId}`)).json()).map(({ id }) => id)).toEqual([turnId]);
    const first = await client.get('/api/turns?limit=1');
    expect(TurnList.parse((await client.get(readNext(first.headers) ?? '')).json()).map(({ id }) => id)).toEqual([turnId]);
    expect((await client.get('/api/turns/t_00000000000000000000000000000000')).status).toBe(404);
    expect((await client.get('/api/turns?status=odd')).status).toBe(400);
  });
});

describe('files', () => {
  promise(['C/4/8'], 'are listed, read, written under If-Match, and deleted', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    const put = async (path: string, text: string, headers: Record<string, string> = {}) =>
      await client.request(`/api/files/${path}`, {
        method: 'PUT',
        rawBody: text,
        headers: { 'content-type': 'text/markdown', ...headers },
      });
    const listed = z.array(z.object({ path: z.string() })).parse((await client.get('/api/files?recursive=true')).json());
    expect(listed.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['IDENTITY.md', 'SOUL.md', 'USER.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md']),
    );
    const soul = await client.get('/api/files/SOUL.md');
    const etag = soul.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"/u);
    expect((await put('SOUL.md', 'new soul', { 'if-match': etag })).status).toBe(204);
    expect((await put('SOUL.md', 'newer soul', { 'if-match': etag })).problem()).toMatchObject({
      status: 412,
      code: 'precondition_failed',
    });
    expect((await client.get('/api/files/SOUL.md')).text).toBe('new soul');
    expect((await put('templates/offer.md', 'Dear {{name}}', { 'if-none-match': '*' })).status).toBe(201);
    expect((await client.request('/api/files/templates/offer.md', { method: 'DELETE' })).status).toBe(204);
    expect((await client.get('/api/files/templates/offer.md')).status).toBe(404);
  });

  promise(
    ['C/4/8', 'SI/what-the-service-does/10'],
    'keep their walls: no private part, no way out, nothing of another tenant',
    async () => {
      const tenant = await contract.tenant();
      const other = await contract.tenant();
      const client = tenant.as('admin');
      const paths = [
        'tenant.json',
        'keys',
        'sessions',
        'inbox',
        'channels',
        '../secrets.json',
        `../${other.tenantId}/SOUL.md`,
        '%2e%2e/secrets.json',
        `..%2f${other.tenantId}%2fSOUL.md`,
        'SOUL.md%00',
        '/etc/passwd',
        'a%5cb',
      ];
      for (const path of paths) {
        const answer = await client.get(`/api/files/${path}`);
        expect([path, [400, 404].includes(answer.status)]).toEqual([path, true]);
        const written = await client.request(`/api/files/${path}`, {
          method: 'PUT',
          rawBody: 'x',
          headers: { 'content-type': 'text/plain' },
        });
        expect([path, [400, 404, 405].includes(written.status)]).toEqual([path, true]);
      }
    },
  );
});

describe('memory', () => {
  promise(['SI/limits/4', 'C/5/7'], 'has a quota: 413 on the API, an error that the agent can explain in a turn', async () => {
    const tenant = await contract.tenant('preview');
    const client = tenant.as('admin');
    const settings = join(contract.system.dataDir, 'tenants', tenant.tenantId, 'tenant.json');
    await writeFile(settings, JSON.stringify({ plan: 'preview', limits: { memoryBytes: 2000 } }));
    const answer = await client.request('/api/files/memory/big.md', {
      method: 'PUT',
      rawBody: 'x'.repeat(3000),
      headers: { 'content-type': 'text/markdown' },
    });
    expect(answer.problem()).toMatchObject({ status: 413, code: 'memory_quota' });
    const turn = await client.ask('admin', { message: `[[tools:memory_write {"text":"${'y'.repeat(3000)}"}]] [[say:full]]` });
    expect(turn.json()).toMatchObject({
      reply: 'full',
      toolCalls: [{ name: 'memory_write', isError: true, output: expect.stringMatching(/quota|memory/iu) }],
    });
    await writeFile(settings, JSON.stringify({ plan: 'preview' }));
    const scope = await contract.system.scope(tenant.tenantId);
    expect((await scope.settings()).plan).toBe('preview');
  });
});

describe('usage', () => {
  promise(['C/4/9'], 'calls models with the tenant’s own key, which it shows to none', async () => {
    const tenant = await contract.tenant();
    const [owner, operator] = [tenant.as('admin'), contract.client()];
    const apiKey = `sk-own-${tenant.tenantId}-0123456789`;
    const set = await owner.request('/api/model-keys/test', { method: 'PUT', body: { apiKey } });
    expect(set.json()).toMatchObject({ provider: 'test', hint: '6789', problem: null });
    expect((await owner.ask('admin', { message: '[[say:paid]] [[usage:7,1]]' })).status).toBe(200);
    const paid = contract.model.requests.filter(({ body }) => JSON.stringify(body).includes('[[say:paid]]'));
    expect(new Set(paid.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${apiKey}`]));
    await untilListed(tenant, 1);
    const report = UsageReport.parse((await tenant.as('read').get('/api/usage')).json());
    expect(report.items).toMatchObject([{ ownKey: true, inputTokens: 7 }]);
    const path = `/ops/api/tenants/${tenant.tenantId}/model-keys`;
    for (const answer of [set, await owner.get('/api/model-keys'), await operator.get(path)]) expect(answer.text).not.toContain(apiKey);
    expect((await operator.request(`${path}/test`, { method: 'DELETE' })).status).toBe(204);
    expect((await owner.get('/api/model-keys')).json()).toEqual([]);
  });

  promise(['C/4/9'], 'counts tokens by day, agent, channel and model, and lists keys without secrets', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    await client.ask('admin', { message: '[[usage:100,20]] [[say:x]]' });
    await client.ask('cs', { message: '[[usage:10,2]] [[say:x]]', sender: 's', channel: 'slack' });
    await untilListed(tenant, 2);
    const usage = (await tenant.as('read').get('/api/usage')).json();
    expect(usage).toMatchObject({
      items: [
        { agent: 'admin', channel: 'web', model: 'test/scripted', calls: 1, inputTokens: 100, outputTokens: 20 },
        { agent: 'cs', channel: 'channel_d', model: 'test/scripted', calls: 1, inputTokens: 10, outputTokens: 2 },
      ],
    });
    const keys = await client.get('/api/keys');
    expect(keys.json()).toHaveLength(3);
    expect(keys.text).not.toContain('ck_live_');
  });
});

describe('the tenant', () => {
  promise(['C/2/2'], 'has settings that are read and changed, and keeps the last good ones when the file is bad', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    expect((await tenant.as('read').get('/api/tenant')).json()).toMatchObject({ id: tenant.tenantId, plan: 'standard' });
    const changed = await client.request('/api/tenant', { method: 'PATCH', body: { timezone: 'Europe/Berlin' } });
    expect(changed.json()).toMatchObject({ timezone: 'Europe/Berlin' });
    expect((await client.request('/api/tenant', { method: 'PATCH', body: { timezone: 'Mars/Base' } })).status).toBe(400);
    expect((await client.request('/api/tenant', { method: 'PATCH', body: { plan: 'preview' } })).status).toBe(400);
    const folder = join(contract.system.dataDir, 'tenants', tenant.tenantId);
    const file = join(folder, 'tenant.json');
    // As a later version leaves them.
    const ofLater = JSON.stringify({ plan: 'standard', timezone: 'Europe/Berlin', ofLater: { deep: true } });
    for (const path of [join(folder, 'settings', 'last-good.json'), file]) await writeFile(path, ofLater);
    await eventually(async () => {
      const view = z.object({ timezone: z.string(), problem: z.string().nullable() }).parse((await client.get('/api/tenant')).json());
      expect(view.timezone).toBe('Europe/Berlin');
      return view.problem?.includes('ofLater') === true;
    });
    expect((await client.request('/api/tenant', { method: 'PATCH', body: { name: 'Acme' } })).status).toBe(200);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ name: 'Acme', ofLater: { deep: true } });
    await writeFile(file, '{ not json');
    await eventually(async () => {
      const view = z.object({ timezone: z.string(), problem: z.string().nullable() }).parse((await client.get('/api/tenant')).json());
      expect(view.timezone).toBe('Europe/Berlin');
      return view.problem !== null;
    });
  });

  promise(['C/2/1', 'SI/what-the-service-does/2'], 'begins with context files that make a first conversation', async () => {
    const tenant = await contract.tenant();
    await tenant.as('admin').ask('admin', { message: 'first-words' });
    const system = JSON.stringify(contract.model.requests.findLast(({ userText }) => userText.includes('first-words'))?.body.messages[0]);
    for (const name of ['Identity', 'Soul', 'User', 'Agents', 'Tools', 'Memory']) expect(system).toContain(`# ${name}`);
    const tenants = await contract.system.tenants();
    for (const id of ['Acme', '-a', 'a-', 'a_b', 'a'.repeat(64), ''])
      await expect(tenants.create(id)).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('the index', () => {
  promise(['SI/what-the-service-does/11'], 'is a cache: deleted, it changes no answer', async () => {
    const tenant = await withSessions(3);
    const client = tenant.as('admin');
    const answers = async (): Promise<unknown[]> =>
      await Promise.all(
        ['/api/sessions', '/api/turns', '/api/skills', '/api/usage', '/api/memory', '/api/memory?q=hello'].map(async (path) =>
          (await client.get(path)).json(),
        ),
      );
    const before = await answers();
    await contract.system.dropIndex(tenant.tenantId);
    await rm(join(contract.system.dataDir, 'index', tenant.tenantId), { recursive: true, force: true });
    expect(await answers()).toEqual(before);
  });
});
