import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditEntry, CreatedKey, Problem } from '@concierge/contract';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually, TestRedis } from '@concierge/testing';
import { keyOf } from '@concierge/turn';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

const CreatedTenant = z.strictObject({ tenantId: z.string(), keys: z.strictObject({ admin: z.string(), cs: z.string() }) });

let concierge: CommandLine;
beforeEach(async () => {
  concierge = await CommandLine.over();
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

const createTenant = async (...more: string[]): Promise<z.infer<typeof CreatedTenant>> =>
  CreatedTenant.parse(await concierge.json('tenant', 'create', 'acme', ...more));

describe('concierge model-key', () => {
  it('takes a tenant’s own key from standard input, lists it without showing it, and removes it', async () => {
    await createTenant();
    const apiKey = 'sk-0123456789abcdef-wxyz';
    const set = await concierge.runPiped({ input: Buffer.from(`${apiKey}\n`) }, 'model-key', 'set', 'acme', 'openai');
    expect([set.code, set.out.toString()]).toEqual([0, expect.stringContaining('its own key')]);
    expect(await concierge.json('model-key', 'list', 'acme')).toMatchObject([{ provider: 'openai', hint: 'wxyz', problem: null }]);
    const listed = await concierge.run('model-key', 'list', 'acme');
    expect(listed.out).toMatch(/^openai +…wxyz/mu);
    for (const { out } of [set, listed]) expect(out.toString()).not.toContain(apiKey);
    await concierge.withScope('acme', async (scope) => expect([...(await scope.modelKeys.open())]).toEqual([['openai', apiKey]]));
    await concierge.json('model-key', 'remove', 'acme', 'openai');
    expect(await concierge.json('model-key', 'list', 'acme')).toEqual([]);
  });

  it('says what it needs', async () => {
    await createTenant();
    const none = await concierge.runPiped({}, 'model-key', 'set', 'acme', 'openai');
    expect([none.code, none.err]).toEqual([1, expect.stringContaining('Give the key on standard input')]);
    const providers = { default: 'openai/gpt', providers: { openai: { baseUrl: 'https://api.example.com/v1' } } };
    await writeFile(join(concierge.dataDir, 'providers.json'), JSON.stringify(providers));
    const unknown = await concierge.runPiped({ input: Buffer.from('sk-long-enough') }, 'model-key', 'set', 'acme', 'opnai');
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('opnai is no model provider here; there are: openai')]);
    const missing = await concierge.run('model-key', 'remove', 'acme', 'openai');
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('There is no own key for openai')]);
  });
});

describe('concierge tenant', () => {
  it('makes a tenant whose two keys open it with their own scopes', async () => {
    const { tenantId, keys } = await createTenant('--plan', 'preview');
    expect(tenantId).toBe('acme');
    await concierge.withScope('acme', async (scope, tenants) => {
      expect((await tenants.authenticate(keys.admin)).key.scopes).toEqual(['admin']);
      expect((await tenants.authenticate(keys.cs)).key.scopes).toEqual(['cs']);
      expect((await scope.settings()).plan).toBe('preview');
    });
  });

  it('lists and shows what there is', async () => {
    expect(await concierge.json('tenant', 'list')).toEqual([]);
    await createTenant();
    expect(await concierge.json('tenant', 'list')).toEqual([
      { tenantId: 'acme', plan: 'standard', name: null, suspended: false, problem: null },
    ]);
    expect(await concierge.json('tenant', 'show', 'acme')).toMatchObject({ tenantId: 'acme', activeKeys: 2, waitingTurns: 0 });
    const { out } = await concierge.run('tenant', 'list');
    expect(out).toMatch(/^TENANT +PLAN +STATE/u);
    expect(out).toMatch(/^acme +standard +active$/mu);
  });

  it('suspends and resumes: the keys are refused, then work again', async () => {
    const { keys } = await createTenant();
    expect(await concierge.json('tenant', 'suspend', 'acme')).toEqual({ tenantId: 'acme', suspended: true });
    await concierge.withScope(
      'acme',
      async (_, tenants) => await expect(tenants.authenticate(keys.admin)).rejects.toMatchObject({ code: 'tenant_suspended' }),
    );
    await concierge.json('tenant', 'resume', 'acme');
    await concierge.withScope('acme', async (_, tenants) => expect((await tenants.authenticate(keys.admin)).scope.tenantId).toBe('acme'));
  });

  it('deletes a tenant and everything of it', async () => {
    await createTenant();
    expect(await concierge.json('tenant', 'delete', 'acme')).toEqual({
      tenantId: 'acme',
      deleted: true,
      notes: [expect.stringContaining('Redis does not answer')],
    });
    expect(await concierge.json('tenant', 'list')).toEqual([]);
  });
});

describe('concierge key', () => {
  it('creates a key with the scopes, the label and the end that were asked for', async () => {
    await createTenant();
    const created = CreatedKey.parse(
      await concierge.json('key', 'create', 'acme', '--scope', 'cs,read', '--label', 'widget', '--expires', '2099-01-31'),
    );
    expect(created.scopes).toEqual(['cs', 'read']);
    expect(await concierge.json('key', 'list', 'acme')).toContainEqual(
      expect.objectContaining({ id: created.id, label: 'widget', expiresAt: '2099-01-31T00:00:00.000Z', revokedAt: null }),
    );
    expect((await concierge.run('key', 'list', 'acme')).out).not.toContain('ck_live_');
  });

  it('revokes a key, and rotates one into a new key with the same scopes', async () => {
    await createTenant();
    const first = CreatedKey.parse(await concierge.json('key', 'create', 'acme', '--scope', 'admin'));
    const second = CreatedKey.parse(await concierge.json('key', 'rotate', 'acme', first.id));
    await concierge.json('key', 'revoke', 'acme', second.id);
    await concierge.withScope('acme', async (_, tenants) => {
      await expect(tenants.authenticate(first.key)).rejects.toMatchObject({ code: 'revoked_key' });
      await expect(tenants.authenticate(second.key)).rejects.toMatchObject({ code: 'revoked_key' });
    });
    expect(second.scopes).toEqual(['admin']);
  });
});

describe('concierge skill', () => {
  const localSkill = async (text: string): Promise<string> => {
    const folder = join(concierge.dataDir, 'local', 'refunds');
    await mkdir(join(folder, 'notes'), { recursive: true });
    await writeFile(join(folder, 'SKILL.md'), text);
    await writeFile(join(folder, 'notes', 'limits.md'), 'Up to 50.');
    return folder;
  };

  it('copies a folder with everything in it, and removes it again', async () => {
    await createTenant();
    const folder = await localSkill('---\nname: refunds\ndescription: How to refund.\n---\nFirst ask.');
    expect(await concierge.json('skill', 'add', 'acme', folder)).toMatchObject({ name: 'refunds', path: 'skills/refunds/SKILL.md' });
    await concierge.withScope('acme', async (scope) => expect((await scope.skills.load('refunds')).files).toEqual(['notes/limits.md']));
    expect(await concierge.json('skill', 'list', 'acme')).toContainEqual(expect.objectContaining({ name: 'refunds' }));
    expect(await concierge.json('skill', 'remove', 'acme', 'refunds')).toEqual({ name: 'refunds', removed: true });
    expect(await concierge.json('skill', 'list', 'acme')).not.toContainEqual(expect.objectContaining({ name: 'refunds' }));
  });

  it('names one that cannot be used and why, to programs, too', async () => {
    await createTenant();
    await concierge.withScope('acme', async (scope) => await scope.files.writeText('skills/torn/SKILL.md', 'No front matter.'));
    expect(await concierge.json('skill', 'list', 'acme')).toContainEqual({
      name: 'torn',
      path: 'skills/torn/SKILL.md',
      reason: expect.stringContaining('front matter'),
    });
    expect((await concierge.run('skill', 'list', 'acme')).out).toMatch(/^skills\/torn\/SKILL\.md +cannot be used: front matter/mu);
  });

  it('removes one whose SKILL.md is a folder', async () => {
    await createTenant();
    await concierge.withScope('acme', async (scope) => await scope.files.writeText('skills/torn/SKILL.md/notes.md', 'No skill.'));
    expect(await concierge.json('skill', 'remove', 'acme', 'torn')).toEqual({ name: 'torn', removed: true });
    expect(await concierge.json('skill', 'list', 'acme')).not.toContainEqual(expect.objectContaining({ name: 'torn' }));
  });

  it('refuses a folder that is no skill', async () => {
    await createTenant();
    const { code, err } = await concierge.run('skill', 'add', 'acme', concierge.dataDir);
    expect(code).toBe(1);
    expect(err).toMatch(/^concierge: .*\n$/u);
  });
});

describe('concierge reindex', () => {
  it('reports what the index did not know, and then nothing', async () => {
    await createTenant();
    await concierge.json('reindex', 'acme');
    await concierge.withScope(
      'acme',
      async (scope) => await scope.files.writeText('skills/new/SKILL.md', '---\nname: new\ndescription: New.\n---\n'),
    );
    const drifted = { tenantId: 'acme', drifted: true, drift: { skills: { added: 1 } } };
    expect(await concierge.json('reindex', 'acme', '--dry-run')).toMatchObject(drifted);
    expect(await concierge.json('reindex', '--all', '--dry-run')).toMatchObject([drifted]);
    expect(await concierge.json('reindex', 'acme')).toMatchObject(drifted);
    expect(await concierge.json('reindex', '--all')).toEqual([expect.objectContaining({ tenantId: 'acme', drifted: false })]);
    const acts = z
      .array(AuditEntry)
      .parse(await concierge.json('audit', 'acme'))
      .filter(({ act }) => act === 'index.rebuild');
    expect(acts).toMatchObject(Array(3).fill({ by: { kind: 'operator', via: 'cli' } }));
  });
});

describe('a command that fails', () => {
  const failures = [
    ['an id that is none', ['tenant', 'create', 'No_Such']],
    ['a tenant that is not there', ['key', 'list', 'nobody']],
    ['a scope that is none', ['key', 'create', 'acme', '--scope', 'root']],
    ['an argument that is missing', ['key', 'revoke', 'acme']],
    ['a command that is none', ['tenants']],
    ['a Redis that is not there', ['turn', 'list', 'acme']],
  ] as const;

  it.each(failures)('reports it in one line and exits with 1: %s', async (_, args) => {
    await createTenant();
    const { code, out, err } = await concierge.run(...args);
    expect(code).toBe(1);
    expect(out).toBe('');
    expect(err).toMatch(/^concierge: [^\n]+\n$/u);
  });

  it.each(failures)('answers a program with a problem document: %s', async (_, args) => {
    await createTenant();
    const { code, err } = await concierge.run(...args, '--json');
    expect(code).toBe(1);
    expect(Problem.parse(JSON.parse(err)).detail).not.toBe('');
  });

  it('reports what is wrong with the environment', async () => {
    await using broken = await CommandLine.over({ KEY_SECRET: 'short', DATABASE_URL: 'mysql://x' });
    const { code, err } = await broken.run('tenant', 'list');
    expect(code).toBe(1);
    expect(err).toContain('KEY_SECRET');
    expect(err).toContain('DATABASE_URL');
  });
});

describe('concierge tenant plan and limits', () => {
  it('change what a tenant may use', async () => {
    await createTenant();
    expect(await concierge.json('tenant', 'plan', 'acme', 'preview')).toMatchObject({ plan: 'preview' });
    await concierge.json('tenant', 'limits', 'acme', 'requestsPerHour=500', 'memoryBytes=1000');
    const changed = await concierge.json('tenant', 'limits', 'acme', 'memoryBytes=none');
    expect(changed).toMatchObject({ settings: { plan: 'preview', limits: { requestsPerHour: 500 } } });
    expect(await concierge.json('tenant', 'limits', 'acme')).toEqual(changed);
    expect((await concierge.run('tenant', 'show', 'acme')).out).toMatch(/^limits +requestsPerHour=500$/mu);
  });

  it('set budgets, in a zone that the owner does not choose', async () => {
    await createTenant();
    const budget = ['tokensPerDay=90000', 'usdPerMonth=12.5', 'scheduleBudgetShare=0.8', 'budgetTimezone=Europe/Berlin'];
    expect(await concierge.json('tenant', 'limits', 'acme', ...budget)).toMatchObject({
      settings: { limits: { tokensPerDay: 90_000, usdPerMonth: 12.5, scheduleBudgetShare: 0.8, budgetTimezone: 'Europe/Berlin' } },
    });
    const without = await concierge.json('tenant', 'limits', 'acme', 'usdPerMonth=none', 'tokensPerDay=none');
    expect(without).toMatchObject({ settings: { limits: { scheduleBudgetShare: 0.8, budgetTimezone: 'Europe/Berlin' } } });
  });

  it.each([
    ['plan', 'golden'],
    ['limits', 'budgetTimezone=Mars/Olympus'],
    ['limits', 'usdPerDay=much'],
    ['limits', 'requestsPerHour=-1'],
    ['limits', 'requestsPerHour'],
    ['limits', 'wishes=3'],
  ])('refuse what is none: %s %s', async (command, value) => {
    await createTenant();
    const { code, err } = await concierge.run('tenant', command, 'acme', value);
    expect(code).toBe(1);
    expect(err).toMatch(/^concierge: [^\n]+\n$/u);
  });
});

describe('concierge audit', () => {
  it('lists what operators did, and what was changed in one tenant', async () => {
    await createTenant();
    const { id } = CreatedKey.parse(await concierge.json('key', 'create', 'acme', '--scope', 'read'));
    await concierge.json('tenant', 'plan', 'acme', 'preview');
    await concierge.withScope('acme', async (scope) =>
      scope.audit.record({ by: { kind: 'key', keyId: id }, act: 'file.write', tenantId: 'acme', target: 'a.md', requestId: 'r' }),
    );
    const { out } = await concierge.run('audit');
    expect(out).toMatch(/^WHEN +WHO +WHAT +TENANT +OF IT\n[\d:.TZ-]+ +operator \(cli\) +tenant\.update +acme +plan\n/u);
    expect(out).not.toContain('file.write');
    const own = await concierge.json('audit', 'acme', '--limit', '2');
    expect(own).toMatchObject([
      { act: 'file.write', by: { kind: 'key', keyId: id } },
      { act: 'tenant.update', by: { kind: 'operator', via: 'cli' } },
    ]);
    expect((await concierge.run('audit', '--limit', '0')).code).toBe(1);
  });

  it('keeps the deletion of a tenant', async () => {
    await createTenant();
    await concierge.json('tenant', 'delete', 'acme');
    expect(await concierge.json('audit')).toMatchObject([
      { act: 'tenant.delete', tenantId: 'acme' },
      { act: 'tenant.create', tenantId: 'acme' },
    ]);
  });
});

describe('a key that the command line revokes', () => {
  it('is told to the services that run, before the command ends', async () => {
    await using redis = await TestRedis.start();
    const subscriber = redis.client();
    const heard: string[] = [];
    subscriber.on('message', (_channel, text) => heard.push(text));
    await subscriber.subscribe(keyOf.recordChanges);
    await createTenant();
    const { id } = CreatedKey.parse(await concierge.json('key', 'create', 'acme', '--scope', 'read'));
    expect((await concierge.runWith({ REDIS_URL: redis.url }, 'key', 'revoke', 'acme', id)).code).toBe(0);
    await eventually(() => heard.length > 0);
    expect(heard.map((text) => z.looseObject({}).parse(JSON.parse(text)))).toMatchObject([{ tenantId: 'acme', store: 'keys', name: id }]);
    subscriber.disconnect();
    const { out } = await concierge.runWith({ REDIS_URL: 'unix:/nowhere/redis.sock' }, 'key', 'revoke', 'acme', id);
    expect(out).toContain('is revoked');
  });
});
