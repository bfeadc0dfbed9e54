import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TestRedis } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import * as tar from 'tar';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

const WithKeys = z.object({ keys: z.object({ admin: z.string() }) });

let concierge: CommandLine;
let other: CommandLine;
let file: string;
beforeEach(async () => {
  concierge = await CommandLine.over();
  other = await CommandLine.over();
  file = join(concierge.dataDir, 'all.tar.gz');
});
afterEach(async () => {
  await concierge[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

async function listPaths(): Promise<string[]> {
  const paths: string[] = [];
  await tar.list({ file, onReadEntry: ({ path }) => paths.push(path) });
  return paths;
}

describe('concierge backup and restore', () => {
  it('bring all tenants to another place, with their keys, their index and the operators’ log', async () => {
    const { keys } = WithKeys.parse(await concierge.json('tenant', 'create', 'acme'));
    await concierge.json('tenant', 'create', 'bolt');
    await concierge.withScope('acme', async (scope) => scope.files.writeText('notes.md', 'kept'));
    const log = join(concierge.dataDir, 'tenants', '.wal', 'a-log');
    await mkdir(log, { recursive: true });
    // As preallocated ones are, and more than a stream takes at once.
    const segment = Buffer.concat([randomBytes(100_000), Buffer.alloc(4_000_000)]);
    await writeFile(join(log, '00000001.wal'), segment);
    await mkdir(join(concierge.dataDir, 'tenants', '.removed-gone-000000000000'));
    expect(await concierge.json('backup', file)).toMatchObject({ tenants: 2, leftOut: 0, cutShort: 0, copied: [] });
    expect(await other.json('restore', file)).toMatchObject({ tenants: ['acme', 'bolt'], isIndexed: true });
    await other.withScope('acme', async (scope, tenants) => {
      expect((await tenants.authenticate(keys.admin)).scope.tenantId).toBe('acme');
      expect((await scope.files.readText('notes.md')).text).toBe('kept');
    });
    expect(await other.json('audit')).toMatchObject([{ tenantId: 'bolt' }, { tenantId: 'acme' }]);
    expect(segment.equals(await readFile(join(other.dataDir, 'tenants', '.wal', 'a-log', '00000001.wal')))).toBe(true);
    expect((await readdir(join(other.dataDir, 'tenants'))).toSorted()).toEqual(['.audit', '.wal', 'acme', 'bolt']);
  });

  it('copy the logs before any file, and inboxes before conversations, so that nothing is met at neither place', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await mkdir(join(concierge.dataDir, 'tenants', '.wal'));
    for (const folder of [
      'outbox/dead',
      'outbox/settled/2026-11-20',
      'outbox/0123456789ab',
      'events/waiting',
      'events/sent',
      'events/dead',
    ])
      await mkdir(join(concierge.dataDir, 'tenants', 'acme', folder), { recursive: true });
    for (const session of ['.json', '.history.jsonl'])
      await writeFile(join(concierge.dataDir, 'tenants', 'acme', 'sessions', `${'a'.repeat(32)}${session}`), '');
    await concierge.json('backup', file);
    const paths = (await listPaths()).map((path) => path.replace('tenants/acme/', ''));
    const order = [
      'tenants/.wal/',
      'inbox/',
      `sessions/${'a'.repeat(32)}.json`,
      'outbox/dead/',
      `sessions/${'a'.repeat(32)}.history.jsonl`,
    ].map((path) => paths.indexOf(path));
    expect(order).not.toContain(-1);
    expect(order).toEqual(order.toSorted((one, another) => one - another));
    for (const [waiting, ended] of [
      ['outbox/0123456789ab/', 'outbox/settled/2026-11-20/'],
      ['outbox/settled/2026-11-20/', 'outbox/dead/'],
      ['events/waiting/', 'events/sent/'],
      ['events/sent/', 'events/dead/'],
    ] as const)
      expect(paths.indexOf(waiting)).toBeLessThan(paths.lastIndexOf(ended));
    expect(paths.indexOf('outbox/dead/')).toBeLessThan(paths.indexOf('outbox/0123456789ab/'));
  });

  it('go through pipes, and name the secrets without copying them, unless it is asked for', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await writeFile(join(concierge.dataDir, 'secrets.json'), '{"KEY_SECRET":"a very secret text of thirty-two characters"}');
    await writeFile(join(concierge.dataDir, 'providers.json'), '{}');
    const { out, err } = await concierge.runPiped({}, 'backup', '-');
    expect(err).toContain('KEY_SECRET and SECRETS_KEY');
    await writeFile(file, out);
    expect(await listPaths()).not.toContain('secrets.json');
    expect((await other.runPiped({ input: out }, 'restore', '-')).code).toBe(0);
    const whole = join(concierge.dataDir, 'with-secrets.tar.gz');
    expect(await concierge.json('backup', whole, '--with-secrets')).toMatchObject({
      copied: ['secrets.json', 'providers.json'],
      notes: [],
    });
    await using third = await CommandLine.over();
    expect(await third.json('restore', whole)).toMatchObject({ copied: expect.arrayContaining(['secrets.json', 'providers.json']) });
  });

  it('need an empty Redis, whatever number of slots tenants are spread over', async () => {
    await using server = await TestRedis.start();
    await concierge.json('tenant', 'create', 'acme');
    await concierge.json('backup', file);
    const spread = { REDIS_URL: server.url, REDIS_SLOTS: '3' };
    expect(await other.runWith(spread, 'restore', file)).toMatchObject({ code: 0, err: '' });
    expect(await other.json('tenant', 'list')).toMatchObject([{ tenantId: 'acme' }]);
  });

  it('leave a deployment alone that has tenants, and whatever is no backup', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.json('backup', file);
    expect((await concierge.run('backup', file)).err).toContain('exists already');
    await other.json('tenant', 'create', 'bolt');
    expect((await other.run('restore', file)).err).toContain('is not empty');
    expect(await other.json('tenant', 'list')).toMatchObject([{ tenantId: 'bolt' }]);
    const archive = join(concierge.dataDir, 'acme.tar.gz');
    await concierge.json('tenant', 'export', 'acme', archive);
    await using third = await CommandLine.over();
    for (const input of [await readFile(archive), Buffer.from('no archive'), (await readFile(file)).subarray(0, 2000)]) {
      expect((await third.runPiped({ input }, 'restore', '-')).code).toBe(1);
      expect(await readdir(join(third.dataDir, 'tenants'))).toEqual([]);
    }
  });

  it('leave nothing of an archive that is cut off, wherever it is', async () => {
    await concierge.json('tenant', 'create', 'acme');
    await concierge.json('backup', file);
    const whole = await readFile(file);
    await using third = await CommandLine.over();
    for (let cut = 1; cut < 40; cut += 1) {
      const input = whole.subarray(0, Math.floor((whole.length * cut) / 40));
      expect([cut, (await third.runPiped({ input }, 'restore', '-')).code]).toEqual([cut, 1]);
    }
    expect((await readdir(third.dataDir)).filter((name) => name.startsWith('.restore-'))).toEqual([]);
    expect(await readdir(join(third.dataDir, 'tenants'))).toEqual([]);
  });
});
