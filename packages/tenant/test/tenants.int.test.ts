import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { encodeKey } from '../src/keys/keys.ts';
import { startTenants, until } from './support.ts';

const code = (name: string): object => expect.objectContaining({ code: name });

describe('tenants', () => {
  it('are made whole, with files for a good first conversation', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme', { plan: 'preview' });
    expect(await scope.settings()).toEqual({ plan: 'preview' });
    expect(scope.settingsProblem()).toBeNull();
    const context = await scope.context.load({ agent: 'admin', sender: null });
    expect(context.files.map((file) => file.name)).toEqual(['IDENTITY.md', 'SOUL.md', 'USER.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md']);
    expect(context.heartbeat).toBeNull();
    expect(context.skills).toEqual([
      expect.objectContaining({ name: 'take-notes', trigger: 'take notes', path: 'skills/take-notes/SKILL.md' }),
    ]);
    expect(await scope.reindexSkills()).toEqual({ indexed: 1, invalid: [] });
    expect(await scope.index.listSkills()).toEqual(context.skills);
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual(['acme']);
    expect((await scope.files.list('', { recursive: true })).map((entry) => entry.path)).toContain('skills/take-notes/SKILL.md');
  });

  it('exist once, with several makers', async () => {
    await using world = await startTenants();
    const others = [world.tenants, await world.another(), await world.another()];
    const outcomes = await Promise.allSettled(others.map(async (tenants) => tenants.create('acme')));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
    await expect(world.tenants.create('acme')).rejects.toThrow(code('conflict'));
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual(['acme']);
  });

  it.each(['', 'Acme', '../x', '-a', 'a-', 'a/b', 'a'.repeat(64), '.new-x', 'ä'])('cannot be called %j', async (id) => {
    await using world = await startTenants();
    await expect(world.tenants.create(id)).rejects.toThrow(code('invalid_request'));
    await expect(world.tenants.open(id)).rejects.toThrow(code('not_found'));
  });

  it('are listed and opened by id, the same scope every time', async () => {
    await using world = await startTenants();
    for (const id of ['b', 'a', '0-9']) await world.tenants.create(id);
    await mkdir(join(world.dataDir, 'tenants', '.new-left'));
    await writeFile(join(world.dataDir, 'tenants', 'file'), '');
    expect(await world.tenants.list()).toEqual(['0-9', 'a', 'b']);
    const other = await world.another();
    const scopes = await Promise.all([other.open('a'), other.open('a'), other.open('a')]);
    expect(new Set(scopes).size).toBe(1);
    await expect(other.open('missing')).rejects.toThrow(code('not_found'));
  });

  it('have one scope as long as a caller has it, however many are opened meanwhile', async () => {
    await using world = await startTenants();
    for (const id of ['a', 'b', 'c']) await world.tenants.create(id);
    const few = await world.another({ openMax: 1 });
    const scope = await few.open('a');
    for (const id of ['b', 'c']) await few.open(id);
    expect(await few.open('a')).toBe(scope);
  });

  it('may ask for a heartbeat when a look without opening them cannot rule it out', async () => {
    await using world = await startTenants();
    const { root } = await world.tenants.create('acme');
    const ask = async (): Promise<boolean> => world.tenants.mayAskForHeartbeat('acme');
    expect(await ask()).toBe(false);
    await writeFile(join(root, 'settings', 'update.json'), '');
    expect(await ask()).toBe(true);
    await rm(join(root, 'settings', 'update.json'));
    await writeFile(join(root, 'tenant.json'), '{"plan":"standard","heartbeat":{}}');
    expect(await ask()).toBe(true);
    await writeFile(join(root, 'tenant.json'), '{"plan":"none of ours"}');
    expect(await ask()).toBe(true);
    await rm(join(root, 'tenant.json'));
    expect(await ask()).toBe(true);
  });

  it('are gone when they are deleted, and their keys with them', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const { key } = await scope.keys.create({ scopes: ['admin'] }, ['admin']);
    await world.tenants.delete('acme');
    await expect(world.tenants.open('acme')).rejects.toThrow(code('not_found'));
    expect(await world.tenants.list()).toEqual([]);
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual([]);
    await expect((await world.another()).authenticate(key)).rejects.toThrow(code('invalid_key'));
    await world.tenants.create('acme');
    await expect((await world.another()).authenticate(key)).rejects.toThrow(code('invalid_key'));
  });

  it('refuse keys while they are suspended, on every process', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const other = await world.another();
    const { key } = await scope.keys.create({ scopes: ['admin'] }, ['admin']);
    await other.authenticate(key);
    await world.tenants.setSuspended('acme', true);
    for (const tenants of [world.tenants, other]) await expect(tenants.authenticate(key)).rejects.toThrow(code('tenant_suspended'));
    await world.tenants.setSuspended('acme', false);
    expect((await other.authenticate(key)).scope.tenantId).toBe('acme');
    expect(await scope.settings()).toEqual({ plan: 'standard' });
  });
});

describe('keys', () => {
  it('state whose they are and what they may do', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const made = await scope.keys.create({ label: 'website', scopes: ['cs', 'cs'] }, ['admin']);
    expect(made).toEqual({
      id: expect.stringMatching(/^k_[0-9a-f]{16}$/u),
      key: expect.stringMatching(/^ck_live_[\w-]+$/u),
      scopes: ['cs'],
    });
    const authenticated = await (await world.another()).authenticate(made.key);
    expect(authenticated.scope.tenantId).toBe('acme');
    expect(authenticated.key).toMatchObject({ id: made.id, scopes: ['cs'], label: 'website' });
    expect(await readFile(join(world.dataDir, 'tenants', 'acme', 'keys', `${made.id}.json`), 'utf8')).not.toContain(made.key);
  });

  it('are refused when missing, made up, of another secret or without a record', async () => {
    await using world = await startTenants();
    await world.tenants.create('acme');
    const claims = { keyId: 'k_0123456789abcdef', accountId: 'acme', scopes: ['admin' as const], issuedAt: '2026-11-20T10:00:00.000Z' };
    await expect(world.tenants.authenticate('')).rejects.toThrow(code('missing_key'));
    for (const key of [
      'ck_live_x',
      encodeKey(claims, 'another secret'),
      encodeKey(claims, 'a secret for tests'),
      encodeKey({ ...claims, accountId: 'nobody' }, 'a secret for tests'),
    ]) {
      await expect(world.tenants.authenticate(key)).rejects.toThrow(code('invalid_key'));
    }
  });

  it('do not work for a tenant into whose folder their record was copied', async () => {
    await using world = await startTenants();
    const acme = await world.tenants.create('acme');
    await world.tenants.create('other');
    const made = await acme.keys.create({ scopes: ['admin'] }, ['admin']);
    const record = join(world.dataDir, 'tenants', 'other', 'keys', `${made.id}.json`);
    await writeFile(record, await readFile(join(world.dataDir, 'tenants', 'acme', 'keys', `${made.id}.json`)));
    const forged = encodeKey(
      { keyId: made.id, accountId: 'other', scopes: ['admin'], issuedAt: '2026-11-20T10:00:00.000Z' },
      'a secret for tests',
    );
    await expect(world.tenants.authenticate(forged)).rejects.toThrow(code('invalid_key'));
  });

  it('have the scopes of their record, not those they claim', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const made = await scope.keys.create({ scopes: ['cs'] }, ['admin']);
    const claimed = encodeKey(
      { keyId: made.id, accountId: 'acme', scopes: ['admin'], issuedAt: '2026-11-20T10:00:00.000Z' },
      'a secret for tests',
    );
    await expect(world.tenants.authenticate(claimed)).rejects.toThrow(code('invalid_key'));
  });

  it('mint only subsets of the scopes of their maker', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    await expect(keys.create({ scopes: ['admin'] }, ['read', 'cs'])).rejects.toThrow(code('scope_required'));
    await expect(keys.create({ scopes: ['cs', 'read'] }, ['cs'])).rejects.toThrow(code('scope_required'));
    await expect(keys.create({ scopes: [] }, ['admin'])).rejects.toThrow(code('invalid_request'));
    expect((await keys.create({ scopes: ['read'] }, ['read', 'cs'])).scopes).toEqual(['read']);
    expect((await keys.create({ scopes: ['read', 'cs', 'admin'] }, ['admin'])).scopes).toEqual(['admin', 'cs', 'read']);
  });

  it('stop working everywhere within a second of being revoked', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const other = await world.another();
    const { id, key } = await scope.keys.create({ scopes: ['admin'] }, ['admin']);
    await other.authenticate(key);
    await scope.keys.revoke(id);
    await expect(world.tenants.authenticate(key)).rejects.toThrow(code('revoked_key'));
    const revokedAtMs = performance.now();
    // What counts is when it was asked; how long the answer takes is the machine's affair.
    let servedMs = revokedAtMs;
    await until(async () => {
      const askedMs = performance.now();
      return other.authenticate(key).then(
        () => {
          servedMs = askedMs;
          return false;
        },
        () => true,
      );
    });
    expect(servedMs - revokedAtMs).toBeLessThanOrEqual(1000);
    await expect(other.authenticate(key)).rejects.toThrow(code('revoked_key'));
    await scope.keys.revoke(id);
    await expect(scope.keys.revoke('k_0000000000000000')).rejects.toThrow(code('not_found'));
    await expect(scope.keys.revoke('../../other/keys/k_0')).rejects.toThrow(code('not_found'));
  });

  it('can be rotated: the new one has the same rights, the old one none', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    const old = await keys.create({ label: 'site', scopes: ['cs'] }, ['admin']);
    const next = await keys.rotate(old.id, ['admin']);
    expect((await world.tenants.authenticate(next.key)).key).toMatchObject({ label: 'site', scopes: ['cs'] });
    await expect(world.tenants.authenticate(old.key)).rejects.toThrow(code('revoked_key'));
    await expect(keys.rotate(next.id, ['read'])).rejects.toThrow(code('scope_required'));
    await expect(keys.rotate(old.id, ['admin'])).rejects.toThrow(code('conflict'));
    expect((await keys.list()).map((view) => [view.label, view.revokedAt === null])).toEqual([
      ['site', false],
      ['site', true],
    ]);
  });

  it('make one new key when they are rotated twice at the same moment', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    const old = await keys.create({ label: 'site', scopes: ['cs'] }, ['admin']);
    const rotated = await Promise.allSettled([keys.rotate(old.id, ['admin']), keys.rotate(old.id, ['admin'])]);
    expect(rotated).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'conflict' } }]);
    expect((await keys.list()).filter(({ revokedAt }) => revokedAt === null)).toHaveLength(1);
  });

  it('expire', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    const past = await keys.create({ scopes: ['read'], expiresAt: new Date(Date.now() - 1).toISOString() }, ['admin']);
    const future = await keys.create({ scopes: ['read'], expiresAt: new Date(Date.now() + 60_000).toISOString() }, ['admin']);
    await expect(world.tenants.authenticate(past.key)).rejects.toThrow(code('invalid_key'));
    await world.tenants.authenticate(future.key);
  });

  it('remember when they were last used, to the minute and without being rewritten', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    const { id, key } = await keys.create({ scopes: ['read'] }, ['admin']);
    const path = join(world.dataDir, 'tenants', 'acme', 'keys', `${id}.json`);
    const before = await stat(path);
    expect(await keys.list()).toEqual([expect.objectContaining({ id, lastUsedAt: null })]);
    await world.tenants.authenticate(key);
    await until(async () => (await keys.list())[0]?.lastUsedAt !== null);
    const first = (await keys.list())[0]?.lastUsedAt;
    await world.tenants.authenticate(key);
    expect((await keys.list())[0]?.lastUsedAt).toBe(first);
    expect(Math.abs(Date.parse(first ?? '') - Date.now())).toBeLessThan(60_000);
    expect((await stat(path)).mtimeMs).toBe(before.mtimeMs);
  });

  it('are refused when their record is damaged', async () => {
    await using world = await startTenants();
    const { keys } = await world.tenants.create('acme');
    const { id, key } = await keys.create({ scopes: ['read'] }, ['admin']);
    await writeFile(join(world.dataDir, 'tenants', 'acme', 'keys', `${id}.json`), '{');
    await expect(world.tenants.authenticate(key)).rejects.toThrow(code('invalid_key'));
    expect(await keys.list()).toEqual([]);
  });
});

describe('settings', () => {
  it('that are bad are reported, and the last good ones stay in force, over a restart, too', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme', { plan: 'standard' });
    await scope.updateSettings({ timezone: 'Europe/Berlin', suspended: true });
    const path = join(world.dataDir, 'tenants', 'acme', 'tenant.json');
    for (const bad of ['{"plan": "standard", "timezone": "Mars/Olympus"}', '{"plan":', '{"plan":"standard","tpyo":1}']) {
      await writeFile(path, bad);
      for (const tenants of [world.tenants, await world.another()]) {
        const seen = await tenants.open('acme');
        expect(await seen.settings()).toEqual({ plan: 'standard', timezone: 'Europe/Berlin', suspended: true });
        expect(seen.settingsProblem()).toEqual(expect.any(String));
      }
    }
    await rm(path);
    expect(await (await (await world.another()).open('acme')).settings()).toMatchObject({ suspended: true });
    await writeFile(path, '{"plan":"preview"}');
    expect(await scope.settings()).toEqual({ plan: 'preview' });
    expect(scope.settingsProblem()).toBeNull();
  });

  it('that never were good are those of the plan that allows least', async () => {
    await using world = await startTenants();
    await mkdir(join(world.dataDir, 'tenants', 'acme'), { recursive: true });
    const scope = await world.tenants.open('acme');
    expect(await scope.settings()).toEqual({ plan: 'preview' });
    // A name that is not taken could be taken by the tenant's own commands, and believed.
    expect(JSON.parse(await readFile(join(scope.root, 'tenant.json'), 'utf8'))).toEqual({ plan: 'preview' });
  });

  it('are changed by merging: null removes, the rest stays', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.updateSettings({ agents: { cs: { maxTurns: 5, tools: ['read'] }, admin: { maxTurns: 9 } }, name: 'Acme' });
    const settings = await scope.updateSettings({ agents: { cs: { tools: null }, admin: null }, name: null });
    expect(settings).toEqual({ plan: 'standard', agents: { cs: { maxTurns: 5 } } });
    await expect(scope.updateSettings({ agents: { cs: { maxTurns: 0 } } })).rejects.toThrow(code('invalid_request'));
    await expect(scope.updateSettings({ plan: null })).rejects.toThrow(code('invalid_request'));
    expect(await (await (await world.another()).open('acme')).settings()).toEqual(settings);
  });

  it('edited by hand are seen by the next who asks', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const path = join(world.dataDir, 'tenants', 'acme', 'tenant.json');
    for (let hours = 1; hours <= 20; hours += 1) {
      await writeFile(path, JSON.stringify({ plan: 'standard', heartbeat: { every: `${String(hours)}h` } }));
      expect((await scope.settings()).heartbeat?.every).toBe(`${String(hours)}h`);
    }
  });
});
