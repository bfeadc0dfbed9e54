import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  ChatReply,
  CreatedKey,
  FileItem,
  KeyView,
  SessionListItem,
  SessionView,
  Skill,
  TenantView,
  UploadRef,
  UsageReport,
} from '@concierge/contract';
import { nestedFlatePdf, untilAborted } from '@concierge/testing';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { atRest, TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
});

async function readCode(response: Response): Promise<[number, unknown]> {
  const body: { code?: unknown } = await z.looseObject({ code: z.string() }).parseAsync(await response.json());
  return [response.status, body.code];
}

async function chat(message: string, body: object = {}): Promise<ChatReply> {
  const response = await gateway.ask(tenant.admin, '/api/admin', {
    method: 'POST',
    headers: { Accept: 'application/json' },
    body: { message, ...body },
  });
  return ChatReply.parse(await response.json());
}

describe('sessions', () => {
  it('are listed newest first, page by page', async () => {
    const ids: string[] = [];
    for (const message of ['a', 'b', 'c']) ids.unshift((await chat(message)).contact_id);
    const seen: string[] = [];
    let next: string | null = '/api/sessions?limit=2&agent=admin';
    for (let page = 0; page < 3 && next !== null; page += 1) {
      const response = await gateway.ask(tenant.read, next);
      seen.push(
        ...z
          .array(SessionListItem)
          .parse(await response.json())
          .map(({ id }) => id),
      );
      next = /^<(?<path>[^>]+)>; rel="next"$/u.exec(response.headers.get('link') ?? '')?.groups?.['path'] ?? null;
    }
    expect(seen).toEqual(ids);
    expect(next).toBeNull();
  });

  it('are listed by what began them, also on the next page', async () => {
    for (const message of ['a', 'b']) await chat(message);
    const first = await gateway.ask(tenant.read, '/api/sessions?limit=1&origin=user,channel');
    expect(await first.json()).toMatchObject([{ title: 'b', origin: 'user' }]);
    const next = /^<(?<path>[^>]+)>; rel="next"$/u.exec(first.headers.get('link') ?? '')?.groups?.['path'] ?? '';
    expect(new URL(next, 'http://x').searchParams.get('origin')).toBe('user,channel');
    expect(await (await gateway.ask(tenant.read, next)).json()).toMatchObject([{ title: 'a', origin: 'user' }]);
    expect(await (await gateway.ask(tenant.read, '/api/sessions?origin=heartbeat')).json()).toEqual([]);
  });

  it('are shown whole, without what only the model was sent', async () => {
    const { contact_id: id } = await chat('hello');
    const session = SessionView.parse(await (await gateway.ask(tenant.read, `/api/sessions/${id}`)).json());
    expect(session.messages).toMatchObject([
      { role: 'user', text: 'hello' },
      { role: 'assistant', text: 'hello' },
    ]);
    expect(session.messages[0]).not.toHaveProperty('sent');
  });

  it('are deleted, and are gone then', async () => {
    const { contact_id: id } = await chat('hello');
    await atRest(tenant);
    expect((await gateway.ask(tenant.admin, `/api/sessions/${id}`, { method: 'DELETE' })).status).toBe(204);
    for (const method of ['GET', 'DELETE'])
      expect(await readCode(await gateway.ask(tenant.admin, `/api/sessions/${id}`, { method }))).toEqual([404, 'not_found']);
    expect(await (await gateway.ask(tenant.admin, '/api/sessions')).json()).toEqual([]);
  });

  it('are not deleted while a turn of theirs is on its way', async () => {
    const { contact_id: id } = await chat('hello');
    gateway.script = async ({ signal }) => untilAborted(signal);
    const running = await gateway.open(tenant.admin, '/api/admin', { method: 'POST', body: { message: 'x', contact_id: id } });
    expect(await readCode(await gateway.ask(tenant.admin, `/api/sessions/${id}`, { method: 'DELETE' }))).toEqual([409, 'session_busy']);
    const turns: { id: string }[] = await z
      .array(z.looseObject({ id: z.string() }))
      .parseAsync(await (await gateway.ask(tenant.admin, '/api/turns')).json());
    await gateway.ask(tenant.admin, `/api/turns/${turns[0]?.id ?? ''}/cancel`, { method: 'POST' });
    await running.text();
  });

  it('of another tenant do not exist', async () => {
    const { contact_id: id } = await chat('hello');
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, `/api/sessions/${id}`)).status).toBe(404);
  });
});

describe('keys', () => {
  it('are created, listed without themselves, rotated and revoked', async () => {
    const created = CreatedKey.parse(
      await (await gateway.ask(tenant.admin, '/api/keys', { method: 'POST', body: { label: 'web', scopes: ['cs'] } })).json(),
    );
    const listed = await (await gateway.ask(tenant.admin, '/api/keys')).text();
    expect(listed).not.toContain(created.key);
    expect(
      z
        .array(KeyView)
        .parse(JSON.parse(listed))
        .find(({ id }) => id === created.id),
    ).toMatchObject({ label: 'web', scopes: ['cs'], revokedAt: null });
    const rotated = await gateway.ask(tenant.admin, `/api/keys/${created.id}/rotate`, { method: 'POST' });
    expect(rotated.status).toBe(201);
    const fresh = CreatedKey.parse(await rotated.json());
    const cs = async (key: string): Promise<Response> => gateway.ask(key, '/api/cs', { method: 'POST', body: { message: 'x' } });
    await (await cs(fresh.key)).text();
    expect(await readCode(await cs(created.key))).toEqual([401, 'revoked_key']);
    expect((await gateway.ask(tenant.admin, `/api/keys/${fresh.id}`, { method: 'DELETE' })).status).toBe(204);
    expect(await readCode(await cs(fresh.key))).toEqual([401, 'revoked_key']);
    expect(await readCode(await gateway.ask(tenant.admin, '/api/keys/k_nobody', { method: 'DELETE' }))).toEqual([404, 'not_found']);
  });

  it('are refused without a scope', async () => {
    expect(await readCode(await gateway.ask(tenant.admin, '/api/keys', { method: 'POST', body: { scopes: [] } }))).toEqual([
      400,
      'invalid_request',
    ]);
  });
});

describe('files', () => {
  const put = async (path: string, body: string, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.ask(tenant.admin, `/api/files/${path}`, { method: 'PUT', body, headers: { 'Content-Type': 'text/markdown', ...headers } });

  it('are written, read with their ETag, listed and removed', async () => {
    const written = await put('templates/welcome mail.md', '# Grüße\n');
    expect(written.status).toBe(201);
    const read = await gateway.ask(tenant.read, '/api/files/templates/welcome%20mail.md');
    expect(read.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(read.headers.get('etag')).toBe(written.headers.get('etag'));
    expect(await read.text()).toBe('# Grüße\n');
    const unchanged = await gateway.ask(tenant.read, '/api/files/templates/welcome%20mail.md', {
      headers: { 'If-None-Match': read.headers.get('etag') ?? '' },
    });
    expect(unchanged.status).toBe(304);
    const listed = z.array(FileItem).parse(await (await gateway.ask(tenant.read, '/api/files?path=templates')).json());
    expect(listed).toContainEqual(expect.objectContaining({ path: 'templates/welcome mail.md', kind: 'file', size: 10 }));
    expect((await gateway.ask(tenant.admin, '/api/files/templates/welcome%20mail.md', { method: 'DELETE' })).status).toBe(204);
    expect((await gateway.ask(tenant.admin, '/api/files/templates/welcome%20mail.md')).status).toBe(404);
  });

  it('are not overwritten by a client that read an older version', async () => {
    const first = (await put('SOUL.md', 'one')).headers.get('etag') ?? '';
    expect((await put('SOUL.md', 'two', { 'If-Match': first })).status).toBe(204);
    expect(await readCode(await put('SOUL.md', 'three', { 'If-Match': first }))).toEqual([412, 'precondition_failed']);
    expect(await readCode(await put('SOUL.md', 'four', { 'If-None-Match': '*' }))).toEqual([412, 'precondition_failed']);
    const removed = await gateway.ask(tenant.admin, '/api/files/SOUL.md', { method: 'DELETE', headers: { 'If-Match': first } });
    expect(await readCode(removed)).toEqual([412, 'precondition_failed']);
    expect(await (await gateway.ask(tenant.admin, '/api/files/SOUL.md')).text()).toBe('two');
  });

  it.each(['tenant.json', 'keys', 'sessions/x.json', 'inbox/x.json', 'KEYS/x'])('%s is not to be read', async (path) => {
    expect(await readCode(await gateway.ask(tenant.admin, `/api/files/${path}`))).toEqual([404, 'not_found']);
  });

  it.each(['..%2f..%2fsecrets.json', 'skills/%2e%2e%2f%2e%2e/secrets.json', 'a%00b', 'a%5cb', 'tenant.json'])(
    '%s is not to be written',
    async (path) => {
      expect(await readCode(await put(path, 'x'))).toEqual([400, 'invalid_request']);
    },
  );

  it('must be UTF-8 text of at most 2 MiB', async () => {
    expect(await readCode(await put('a.md', 'x'.repeat(2 * 1024 * 1024 + 1)))).toEqual([413, 'too_large']);
    expect(await readCode(await put('a.md', 'x', { 'Content-Type': 'image/png' }))).toEqual([415, 'unsupported_media_type']);
    const latin = await gateway.ask(tenant.admin, '/api/files/a.md', { method: 'PUT', body: Buffer.from([0xfc]) });
    expect(await readCode(latin)).toEqual([400, 'invalid_request']);
  });
});

describe('skills', () => {
  const skill = '---\nname: refund\ndescription: How to refund.\ntrigger: refund\n---\nSteps.\n';

  it('written as files are listed, and counted by a reindex that names the broken ones', async () => {
    for (const [path, text] of [
      ['skills/refund/SKILL.md', skill],
      ['skills/broken/SKILL.md', 'no front matter'],
    ] as const) {
      await gateway.ask(tenant.admin, `/api/files/${path}`, { method: 'PUT', body: text, headers: { 'Content-Type': 'text/markdown' } });
    }
    const before = z.array(Skill).parse(await (await gateway.ask(tenant.read, '/api/skills')).json());
    expect(before).toContainEqual({ name: 'refund', description: 'How to refund.', trigger: 'refund', path: 'skills/refund/SKILL.md' });
    const report = await (await gateway.ask(tenant.admin, '/api/skills/reindex', { method: 'POST' })).json();
    expect(report).toMatchObject({ indexed: before.length, invalid: [{ path: 'skills/broken/SKILL.md' }] });
  });
});

describe('the tenant', () => {
  it('is read and patched, null removes', async () => {
    const patch = async (body: object, type = 'application/merge-patch+json'): Promise<Response> =>
      gateway.ask(tenant.admin, '/api/tenant', { method: 'PATCH', body, headers: { 'Content-Type': type } });
    expect(TenantView.parse(await (await patch({ timezone: 'Europe/Berlin' })).json())).toMatchObject({
      id: tenant.id,
      plan: 'standard',
      timezone: 'Europe/Berlin',
      problem: null,
    });
    expect(TenantView.parse(await (await patch({ timezone: null }, 'application/json')).json())).not.toHaveProperty('timezone');
    expect(await readCode(await patch({ plan: 'preview' }))).toEqual([400, 'invalid_request']);
    expect(await readCode(await patch({ timezone: 'Europe/Nowhere' }))).toEqual([400, 'invalid_request']);
  });

  it('is patched within its settings, too: null removes what it stands for, and leaves the rest', async () => {
    const patch = async (body: object): Promise<unknown[]> => {
      const headers = { 'Content-Type': 'application/merge-patch+json' };
      const response = await gateway.ask(tenant.admin, '/api/tenant', { method: 'PATCH', body, headers });
      const { agents, channels, handoff, onFailure, heartbeat } = TenantView.parse(await response.json());
      return [agents, channels, handoff, onFailure, heartbeat];
    };
    await patch({
      agents: { cs: { maxTurns: 5, tools: ['read'] }, admin: { maxTurns: 9 } },
      channels: { telegram: { busy: 'collect', debounceMs: 0 }, slack: { busy: 'queue' } },
      handoff: { notice: 'We look into it.', hours: 2 },
      onFailure: { action: 'say', notice: 'Sorry.' },
      heartbeat: { every: '30m', activeHours: '08:00-20:00' },
    });
    const patched = await patch({
      agents: { cs: { tools: null, model: null }, admin: null },
      channels: { telegram: { debounceMs: null }, slack: null },
      handoff: { hours: null },
      onFailure: { notice: null },
      heartbeat: { activeHours: null },
    });
    expect(patched).toEqual([
      { cs: { maxTurns: 5 } },
      { telegram: { busy: 'collect' } },
      { notice: 'We look into it.' },
      { action: 'say' },
      { every: '30m' },
    ]);
  });

  it('keeps its last good settings while tenant.json is broken, and reports what is wrong', async () => {
    await gateway.ask(tenant.admin, '/api/tenant');
    await writeFile(join(gateway.dataDir, 'tenants', tenant.id, 'tenant.json'), '{"plan":"gold"}');
    const view = TenantView.parse(await (await gateway.ask(tenant.read, '/api/tenant')).json());
    expect(view.plan).toBe('standard');
    expect(view.problem).toContain('plan');
  });
});

describe('usage', () => {
  it('sums what turns have used', async () => {
    await chat('a');
    await chat('b');
    const report = UsageReport.parse(await (await gateway.ask(tenant.read, '/api/usage')).json());
    expect(report.total).toMatchObject({ turns: 2, calls: 2, inputTokens: 6, outputTokens: 10, costUsd: null });
    expect(report.items).toMatchObject([{ day: report.to, agent: 'admin', channel: 'web', model: 'test/scripted' }]);
    const earlier = UsageReport.parse(await (await gateway.ask(tenant.read, '/api/usage?from=2020-01-01&to=2020-01-02')).json());
    expect(earlier.items).toEqual([]);
  });
});

describe('uploads', () => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const pdf = Buffer.from(
    `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F1 18 Tf 10 100 Td (Hello from PDF) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
%%EOF`,
  );

  type Part = readonly [field: string, bytes: Uint8Array<ArrayBuffer>, name: string];

  async function upload(parts: readonly Part[]): Promise<Response> {
    const files = parts.map(([field, content, name]) => ({ field, bytes: content, name, type: 'application/x-claimed' }));
    const empty = { headers: { 'Content-Type': 'multipart/form-data; boundary=x' }, body: Buffer.from('--x--\r\n') };
    if (files.length === 0) return gateway.ask(tenant.cs, '/api/uploads', { method: 'POST', ...empty });
    return gateway.ask(tenant.cs, '/api/uploads', { method: 'POST', files });
  }
  const bytes = (buffer: Buffer): Uint8Array<ArrayBuffer> => Uint8Array.from(buffer);
  const text = (content: string): Uint8Array<ArrayBuffer> => bytes(Buffer.from(content));

  it('keeps several files, each with the type of its bytes and a safe name', async () => {
    const response = await upload([
      ['file', bytes(png), '../../photo.txt'],
      ['file', bytes(pdf), 'Rechnung März.pdf'],
      ['file', text('Notizen für später'), 'notes.md'],
    ]);
    expect(response.status).toBe(201);
    const stored = z.array(UploadRef).parse(await response.json());
    expect(stored).toMatchObject([
      { name: 'photo.txt', type: 'image/png', size: png.length },
      { name: 'Rechnung März.pdf', type: 'application/pdf', size: pdf.length },
      { name: 'notes.md', type: 'text/plain' },
    ]);
    expect(await tenant.scope.uploads.bytes(stored[1]?.id ?? '')).toEqual(pdf);
    expect(await tenant.scope.uploads.text(stored[2]?.id ?? '')).toBe('Notizen für später');
    expect(await tenant.scope.uploads.bytes(stored[0]?.id ?? '')).toEqual(png);
  });

  it('can be attached, whole or by id, and keep what was stored', async () => {
    const [ref] = z.array(UploadRef).parse(await (await upload([['file', text('x'), 'n.txt']])).json());
    if (ref === undefined) throw new Error('nothing was stored');
    const { contact_id: id } = await chat('look', { attachments: [ref, ref.id] });
    const session = SessionView.parse(await (await gateway.ask(tenant.read, `/api/sessions/${id}`)).json());
    expect(session.messages[0]).toMatchObject({ attachments: [ref, ref] });
    const forged = await gateway.ask(tenant.admin, '/api/admin', {
      method: 'POST',
      body: { message: 'x', attachments: [{ ...ref, name: 'other.txt' }] },
    });
    expect(await readCode(forged)).toEqual([400, 'invalid_request']);
    const other = await gateway.tenant();
    const foreign = await gateway.ask(other.admin, '/api/admin', { method: 'POST', body: { message: 'x', attachments: [ref.id] } });
    expect(await readCode(foreign)).toEqual([400, 'invalid_request']);
  });

  it('reads no PDF: hostile ones cost neither memory of the gateway nor time of a neighbour', async () => {
    const bomb = nestedFlatePdf();
    const neighbour = await gateway.tenant();
    const before = process.memoryUsage.rss();
    const hostile = Array.from({ length: 5 }, async () => upload(Array.from({ length: 10 }, (): Part => ['file', bomb, 'menu.pdf'])));
    const request = { method: 'POST', files: [{ bytes: Buffer.from('hello'), name: 'a.txt' }] };
    expect((await gateway.ask(neighbour.cs, '/api/uploads', request)).status).toBe(201);
    const answers = await Promise.all(hostile);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(process.memoryUsage.rss() - before).toBeLessThan(256 * 1024 * 1024);
    const [ref] = z.array(UploadRef).parse(await answers[0]?.json());
    expect(await tenant.scope.uploads.text(ref?.id ?? '')).toBeUndefined();
  });

  it.each<[string, Part[], [number, string]]>([
    ['a file that is none of the types', [['file', text('a\u0000b'), 'x.bin']], [415, 'unsupported_media_type']],
    [
      'one bad file among good ones',
      [
        ['file', text('ok'), 'a.txt'],
        ['file', text('\u0000'), 'b.txt'],
      ],
      [415, 'unsupported_media_type'],
    ],
    ['a file over 10 MiB', [['file', text('x'.repeat(10 * 1024 * 1024 + 1)), 'big.txt']], [413, 'too_large']],
    ['eleven files', Array.from({ length: 11 }, (): Part => ['file', text('x'), 'a.txt']), [400, 'invalid_request']],
    ['another field', [['attachment', text('x'), 'a.txt']], [400, 'invalid_request']],
    ['an empty file', [['file', text(''), 'a.txt']], [400, 'invalid_request']],
    ['no file', [], [400, 'invalid_request']],
  ])('refuses %s', async (_name, parts, outcome) => {
    expect(await readCode(await upload(parts))).toEqual(outcome);
  });

  it('takes a file of exactly 10 MiB', async () => {
    expect((await upload([['file', text('x'.repeat(10 * 1024 * 1024)), 'big.txt']])).status).toBe(201);
  });

  it('takes multipart only', async () => {
    expect(await readCode(await gateway.ask(tenant.admin, '/api/uploads', { method: 'POST', body: {} }))).toEqual([
      415,
      'unsupported_media_type',
    ]);
  });
});
