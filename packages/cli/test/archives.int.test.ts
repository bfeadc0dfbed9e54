import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { link, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AcceptedTurn, Session } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import * as tar from 'tar';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

const WithKeys = z.object({ tenantId: z.string(), keys: z.object({ admin: z.string(), cs: z.string() }) });

let concierge: CommandLine;
let archive: string;
beforeEach(async () => {
  concierge = await CommandLine.over();
  archive = join(concierge.dataDir, 'acme.tar.gz');
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

const conversation = '0123456789abcdef0123456789abcdef';
const swapperPath = fileURLToPath(new URL('../../tenant/test/folder-swapper.ts', import.meta.url));
const secret = 'what another tenant keeps to itself';
const at = '2026-11-20T10:00:00.000Z';
const accepted: AcceptedTurn = {
  version: 1,
  turnId: 't_1',
  tenantId: 'copy',
  sessionId: conversation,
  acceptedAtMs: 1,
  origin: 'api',
  agent: 'admin',
  authority: 'admin',
  channel: 'web',
  sender: null,
  text: 'Hello',
  attachments: [],
  requestHash: 'h',
  keyId: null,
};
const session: Session = {
  version: 1,
  id: conversation,
  agent: 'admin',
  channel: 'web',
  sender: null,
  revision: 1,
  createdAt: at,
  updatedAt: at,
  title: 'A title',
  messageCount: 0,
  summary: null,
  messages: [],
  turns: [],
  contextTokens: null,
};

async function fillWithMessaging(scope: TenantScope): Promise<void> {
  const by = { kind: 'operator' } as const;
  await scope.channels.connect('channel_c', { botToken: 'token', secretToken: 'hook' });
  await scope.modelKeys.put('openai', { apiKey: 'sk-of-the-tenant' });
  await scope.schedules.create({ name: 'Report', message: 'Go.', schedule: { every: '1h' } }, { by, authority: 'admin' });
  await scope.handoffs.request(conversation, { reason: 'asked', by });
  await scope.contacts.remember({ sender: '4242', displayName: 'Bob' });
  const message = { kind: 'message', channel: 'channel_c', to: '4242', sessionId: conversation, text: 'Hi' } as const;
  await scope.events.endpoints.create({ url: 'https://example.com/' });
  await scope.outbox.accept({ ...message, agent: 'admin', turnId: 't1', callId: 'c1' });
}

/** A forged archive: `fill` makes its content. */
async function forge(fill: (folder: string) => Promise<void>, entries: string[] = ['acme']): Promise<void> {
  const folder = join(concierge.dataDir, 'forged');
  await mkdir(join(folder, 'acme'), { recursive: true });
  await writeFile(join(folder, 'acme', 'tenant.json'), '{"plan":"standard"}');
  await fill(folder);
  await tar.create({ file: archive, gzip: true, cwd: folder, preservePaths: true }, entries);
}

describe('concierge tenant export and import', () => {
  it('brings a tenant back as it was, with its keys', async () => {
    const { keys } = WithKeys.parse(await concierge.json('tenant', 'create', 'acme'));
    await concierge.withScope('acme', async (scope) => await scope.files.writeText('memory/notes.md', 'Jo likes tea.'));
    expect(await concierge.json('tenant', 'export', 'acme', archive)).toMatchObject({ tenantId: 'acme', file: archive });
    const paths: string[] = [];
    await tar.list({ file: archive, onReadEntry: ({ path }) => paths.push(path) });
    expect(paths).toEqual(expect.arrayContaining(['acme/tenant.json', 'acme/memory/notes.md']));
    // What distinguishes it from another tenant of its name goes along; what keeps tenant.json safe is made again.
    expect(paths.filter((path) => /settings|\.revisions/u.test(path))).toEqual([
      'acme/settings/',
      'acme/settings/audit/',
      'acme/settings/audit/000001.jsonl',
      'acme/settings/incarnation',
    ]);
    await concierge.json('tenant', 'delete', 'acme');
    expect(await concierge.json('tenant', 'import', archive)).toMatchObject({ tenantId: 'acme' });
    await concierge.withScope('acme', async (scope, tenants) => {
      expect((await scope.files.readText('memory/notes.md')).text).toBe('Jo likes tea.');
      expect((await tenants.authenticate(keys.admin)).scope.tenantId).toBe('acme');
    });
  });

  it('has no credentials in clear, also when some were put there', async () => {
    await concierge.json('tenant', 'create', 'acme');
    const folder = join(concierge.dataDir, 'tenants', 'acme', 'channels');
    await writeFile(join(folder, 'telegram.json'), JSON.stringify({ botToken: 'very-secret', secretToken: 'hook' }));
    for (const name of ['slack.json', 'telegram.json~', 'telegram.json.old', '.tmp-1-1'])
      await writeFile(join(folder, name), JSON.stringify({ botToken: 'very-secret' }));
    await concierge.json('tenant', 'export', 'acme', archive);
    const names: string[] = [];
    await tar.list({ file: archive, onReadEntry: ({ path }) => names.push(path) });
    expect(names.filter((name) => name.startsWith('acme/channels/'))).toEqual(['acme/channels/', 'acme/channels/channel_c.json']);
  });

  it('makes a copy under another id, with new keys', async () => {
    const { keys } = WithKeys.parse(await concierge.json('tenant', 'create', 'acme'));
    await concierge.json('tenant', 'export', 'acme', archive);
    const copy = WithKeys.parse(await concierge.json('tenant', 'import', archive, '--as', 'copy'));
    await concierge.withScope('copy', async (scope, tenants) => {
      expect((await tenants.authenticate(copy.keys.admin)).scope.tenantId).toBe('copy');
      expect(await scope.keys.list()).toHaveLength(2);
      // Its inbox was left behind with the old id's turns, folder and all.
      expect(await scope.inbox.accept(accepted)).toBe('accepted');
      expect(await scope.identity()).toMatch(/^copy\/[0-9a-f]{16}$/u);
      expect((await tenants.authenticate(keys.admin)).scope.tenantId).toBe('acme');
    });
  });

  it('carries schedules, handoffs and contacts, and leaves channels and waiting messages to the id they belong to', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.withScope('acme', async (scope) => await fillWithMessaging(scope));
    await concierge.json('tenant', 'export', 'acme', archive);
    const { out } = await concierge.run('tenant', 'import', archive, '--as', 'copy');
    expect(out).toContain('Connect the channels anew.');
    expect(out).toContain('1 schedules came along and are enabled');
    await concierge.withScope('copy', async (scope) => {
      expect((await scope.schedules.list()).schedules).toMatchObject([{ name: 'Report' }]);
      expect(await scope.handoffs.isPaused(conversation)).toBe(true);
      expect(await scope.contacts.find('4242')).toMatchObject({ displayName: 'Bob' });
      expect(await scope.channels.list()).toEqual([]);
      expect(await scope.outbox.waiting()).toEqual([]);
      expect(await scope.events.endpoints.list()).toEqual([]);
      expect(await scope.modelKeys.list()).toEqual([]);
    });
  });

  it('brings everything back under the same id, and reports when credentials cannot be opened', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.withScope('acme', async (scope) => await fillWithMessaging(scope));
    await concierge.json('tenant', 'export', 'acme', archive);
    await concierge.json('tenant', 'delete', 'acme');
    expect(await concierge.json('tenant', 'import', archive)).toMatchObject({ notes: [] });
    await concierge.withScope('acme', async (scope) => {
      expect(await scope.channels.open('channel_c')).toEqual({ botToken: 'token', secretToken: 'hook' });
      expect([...(await scope.modelKeys.open())]).toEqual([['openai', 'sk-of-the-tenant']]);
      expect(await scope.outbox.waiting()).toHaveLength(1);
      expect(await scope.events.endpoints.list()).toMatchObject([{ url: 'https://example.com/', state: 'enabled' }]);
    });
    await concierge.json('tenant', 'delete', 'acme');
    const { out } = await concierge.runWith({ SECRETS_KEY: 'another one that is long enough, too' }, 'tenant', 'import', archive);
    expect(out).toContain('The credentials of telegram cannot be opened with this SECRETS_KEY');
  });

  it('carries the earlier versions of files, to another id, too', async () => {
    await concierge.json('tenant', 'create', 'acme');
    const versions = await concierge.withScope('acme', async ({ fileHistory }) => {
      for (const text of ['one', 'two']) await fileHistory.write('SOUL.md', { text, by: { kind: 'operator' } });
      return await fileHistory.list('SOUL.md');
    });
    expect(versions.length).toBeGreaterThan(1);
    await concierge.json('tenant', 'export', 'acme', archive);
    await concierge.json('tenant', 'import', archive, '--as', 'copy');
    await concierge.json('tenant', 'delete', 'acme');
    await concierge.json('tenant', 'import', archive);
    for (const tenantId of ['acme', 'copy'])
      expect(await concierge.withScope(tenantId, async ({ fileHistory }) => await fileHistory.list('SOUL.md'))).toEqual(versions);
  });

  it('leads nowhere that a command of the tenant puts links to meanwhile', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.json('tenant', 'create', 'bolt');
    const { root } = await concierge.withScope('acme', async (scope) => Promise.resolve(scope));
    const vault = join(concierge.dataDir, 'tenants', 'bolt', 'vault');
    for (const folder of [vault, ...Array.from({ length: 40 }, (_, at) => join(root, `d${String(at)}`))]) {
      await mkdir(folder);
      for (let at = 0; at < 20; at += 1)
        await writeFile(join(folder, `f${String(at)}`), folder === vault ? secret : 'x'.repeat(secret.length));
    }
    const swapper = spawn(process.execPath, ['--no-warnings', swapperPath, vault, '40'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(swapper, 'close');
    await once(swapper.stdout, 'data');
    try {
      for (let time = 0; time < 5; time += 1) {
        const file = join(concierge.dataDir, `acme-${String(time)}.tar.gz`);
        await concierge.json('tenant', 'export', 'acme', file);
        expect(gunzipSync(await readFile(file)).includes(secret)).toBe(false);
      }
    } finally {
      swapper.kill('SIGKILL');
      await closed;
    }
  });

  it('lists what it leaves out, and can be read back without it', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.withScope('acme', async (scope) => {
      await writeFile(join(scope.root, 'named-once.md'), 'here');
      await writeFile(join(scope.root, 'named-twice.md'), 'x');
      await link(join(scope.root, 'named-twice.md'), join(scope.root, 'second-name.md'));
      await symlink('/etc', join(scope.root, 'link'));
      await scope.sessions.publish(session);
    });
    expect(await concierge.json('tenant', 'export', 'acme', archive)).toMatchObject({ leftOut: 3, cutShort: 0 });
    await concierge.json('tenant', 'delete', 'acme');
    await concierge.json('tenant', 'import', archive);
    await concierge.withScope('acme', async (scope) => {
      expect((await scope.files.readText('named-once.md')).text).toBe('here');
      expect(await scope.sessions.load(conversation)).toMatchObject({ title: 'A title' });
    });
  });

  it('goes through pipes where a file is not wanted', async () => {
    const { keys } = WithKeys.parse(await concierge.json('tenant', 'create', 'acme'));
    // More than a stream takes at once.
    await concierge.withScope('acme', async (scope) => {
      for (const size of [60_000, 200_000]) await writeFile(join(scope.root, `random-${String(size)}`), randomBytes(size));
    });
    const { out, err } = await concierge.runPiped({}, 'tenant', 'export', 'acme', '-', '--json');
    expect(JSON.parse(err)).toMatchObject({ tenantId: 'acme', leftOut: 0, cutShort: 0 });
    await concierge.json('tenant', 'delete', 'acme');
    expect((await concierge.runPiped({ input: out }, 'tenant', 'import', '-')).code).toBe(0);
    await concierge.withScope('acme', async (scope, tenants) => {
      expect((await tenants.authenticate(keys.admin)).scope.tenantId).toBe('acme');
      // What was changed before is on record, after it the import.
      const { entries } = await scope.audit.page({ limit: 10 });
      expect(entries.map(({ act }) => act)).toEqual(['tenant.import', 'tenant.export', 'tenant.create']);
    });
    const torn = await concierge.runPiped({ input: out.subarray(0, out.length / 2) }, 'tenant', 'import', '-', '--as', 'torn');
    expect(torn.code).toBe(1);
    expect(await readdir(join(concierge.dataDir, 'tenants'))).toEqual(['.audit', 'acme']);
  });

  it('overwrites neither a file nor a tenant', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.json('tenant', 'export', 'acme', archive);
    expect((await concierge.run('tenant', 'export', 'acme', archive)).err).toContain('exists already');
    expect((await concierge.run('tenant', 'import', archive)).err).toContain('exists already');
  });

  const forgeries: readonly [string, () => Promise<void>][] = [
    ['a link out of the tenant', async () => await forge(async (folder) => await symlink('/etc', join(folder, 'acme', 'skills')))],
    [
      'a path that climbs',
      async () => await forge(async (folder) => await writeFile(join(folder, '..', 'escaped'), 'x'), ['acme', 'acme/../../escaped']),
    ],
    ['two tenants', async () => await forge(async (folder) => await mkdir(join(folder, 'other')), ['acme', 'other'])],
    ['no settings', async () => await forge(async (folder) => await writeFile(join(folder, 'acme', 'tenant.json'), '{}'))],
    ['no archive at all', async () => await writeFile(archive, 'plain text')],
  ];

  it.each(forgeries)('refuses %s, and leaves nothing behind', async (_, make) => {
    await make();
    const { code, err } = await concierge.run('tenant', 'import', archive);
    expect(code).toBe(1);
    expect(err).toMatch(/^concierge: [^\n]+\n$/u);
    expect(await readdir(join(concierge.dataDir, 'tenants'))).toEqual([]);
  });
});
