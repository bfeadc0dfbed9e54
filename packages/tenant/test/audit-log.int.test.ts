import { appendFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { AuditLog, type AuditRecord } from '@concierge/tenant';
import { FolderSync } from '@concierge/files';
import { createLog } from '@concierge/runtime';
import { startTenants, temporaryFolder } from './support.ts';

const log = createLog({ service: 'test', level: 'silent' });
const record = (target: string): AuditRecord => ({
  by: { kind: 'key', keyId: 'k_1' },
  act: 'file.write',
  tenantId: 'acme',
  target,
  requestId: null,
});

async function allTargets(audit: AuditLog, limit: number): Promise<(string | null)[]> {
  const targets: (string | null)[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await audit.page({ limit, cursor });
    targets.push(...page.entries.map(({ target }) => target));
    if (page.nextCursor === null) return targets;
    cursor = page.nextCursor;
  }
}

describe('an audit log', () => {
  it('is read newest first, page by page, past torn lines and across its files', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'audit');
    const audit = new AuditLog({ folder: path, store: path, folders: new FolderSync(), log, fileMaxBytes: 500, filesKept: 100 });
    expect(await audit.page({ limit: 3 })).toEqual({ entries: [], nextCursor: null });
    for (let at = 0; at < 10; at += 1) {
      await audit.record(record(String(at)));
      await appendFile(join(path, (await readdir(path)).toSorted().at(-1) ?? ''), '{"at":"torn');
    }
    expect((await readdir(path)).length).toBeGreaterThan(2);
    const expected = ['9', '8', '7', '6', '5', '4', '3', '2', '1', '0'];
    expect(await allTargets(audit, 3)).toEqual(expected);
    expect(await allTargets(audit, 10)).toEqual(expected);
    await expect(audit.page({ limit: 3, cursor: 'none' })).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('keeps what two writers append, and so many files', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'audit');
    const options = { folder: path, store: path, folders: new FolderSync(), log, fileMaxBytes: 2000, filesKept: 4 };
    const writers = [new AuditLog(options), new AuditLog(options)];
    for (let at = 0; at < 20; at += 1)
      await Promise.all(writers.map(async (writer, name) => writer.record(record(`${String(name)} ${String(at)}`))));
    const whole = await allTargets(new AuditLog(options), 100);
    expect(new Set(whole)).toEqual(new Set(Array.from({ length: 20 }, (_, at) => [`0 ${String(at)}`, `1 ${String(at)}`]).flat()));
    for (let at = 0; at < 100; at += 1) await writers[0]?.record(record('x'.repeat(5000)));
    const files = await readdir(path);
    expect(files).toHaveLength(4);
    for (const file of files) expect((await stat(join(path, file))).size).toBeLessThan(2000 + 1500);
  });

  it('of a tenant is out of reach of its tools and of the file API, and does not bring a deleted tenant back', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.audit.record(record('x'));
    await expect(scope.files.readText('settings/audit/000001.jsonl')).rejects.toMatchObject({ code: 'not_found' });
    await expect(scope.files.writeText('settings/audit/000001.jsonl', 'x')).rejects.toMatchObject({ code: 'invalid_request' });
    await world.tenants.delete('acme');
    await scope.audit.record(record('y'));
    expect(await world.tenants.list({ isSure: true })).toEqual([]);
  });
});
