import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WidgetBody, WidgetKey, WidgetRecord } from '@concierge/contract';
import { parseStored } from '@concierge/files';
import { openIndex, type IndexStore } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { Tenants, type TenantScope } from '../src/index.ts';
import { workspaceRules } from '../src/files/tenant-files.ts';

const log = createLog({ service: 'test', level: 'silent' });
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let index: IndexStore;
let tenants: Tenants;
let scope: TenantScope;
let file: string;
let count = 0;

function tenantsWith(secretsKey: string): Tenants {
  return new Tenants({ dataDir: directory.path, index, keySecret: 'k'.repeat(40), secretsKey, log });
}

beforeAll(async () => {
  directory = await temporaryDirectory();
  index = await openIndex({ databaseUrl: undefined, dataDir: directory.path, log });
  tenants = tenantsWith('s'.repeat(40));
});
afterAll(async () => {
  await index.close();
  await directory[Symbol.asyncDispose]();
});
beforeEach(async () => {
  count += 1;
  scope = await tenants.create(`acme-${String(count)}`);
  file = join(scope.root, 'widget', 'widget.json');
});

const enabled = WidgetBody.parse({ enabled: true, origins: ['https://shop.example'] });

describe('the settings of a web widget', () => {
  it('are nothing before they are made, and then one private file in a covered folder', async () => {
    expect(await scope.widget.view()).toMatchObject({ enabled: false, key: null, secret: 'unset', problem: null });
    const { key } = await scope.widget.put(enabled);
    expect(WidgetKey.parse(key)).toContain(`ck_pub_${scope.tenantId}_`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(workspaceRules.masked).toContain('widget');
    await expect(scope.files.readText('widget/widget.json')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('open for the key in force alone, of the tenant that it names', async () => {
    const { key } = await scope.widget.put(enabled);
    expect((await tenants.openWidget(key ?? '')).widget).toMatchObject({ origins: ['https://shop.example'], secret: null });
    const wrong = [
      `${key ?? ''}0`,
      `${key ?? ''} `,
      (key ?? '').toUpperCase(),
      `${(key ?? '').slice(0, -32)}${'0'.repeat(32)}`,
      'ck_pub_../x',
      '',
    ];
    for (const other of wrong) await expect(tenants.openWidget(other)).rejects.toMatchObject({ code: 'invalid_key' });
    await scope.widget.put({ ...enabled, enabled: false });
    await expect(tenants.openWidget(key ?? '')).rejects.toMatchObject({ code: 'invalid_key' });
  });

  it('keep their secret sealed, for this tenant and this deployment', async () => {
    const secret = await scope.widget.rotateSecret();
    const { key } = await scope.widget.put(enabled);
    expect(await readFile(file, 'utf8')).not.toContain(secret);
    expect((await tenants.openWidget(key ?? '')).widget.secret).toBe(secret);
    const elsewhere = tenantsWith('t'.repeat(40));
    expect((await elsewhere.openWidget(key ?? '')).widget.secret).toBeNull();
    expect(await (await elsewhere.open(scope.tenantId)).widget.view()).toMatchObject({ secret: 'unreadable' });
  });

  it('are seen by every process as soon as they change', async () => {
    const { key } = await scope.widget.put(enabled);
    const other = tenantsWith('s'.repeat(40));
    await other.openWidget(key ?? '');
    const after = await scope.widget.rotateKey();
    await expect(other.openWidget(key ?? '')).rejects.toMatchObject({ code: 'invalid_key' });
    expect((await other.openWidget(after.key ?? '')).scope.tenantId).toBe(scope.tenantId);
  });

  it('of this version are whole for an earlier one, which keeps their display; those of an earlier one have the defaults', async () => {
    const { key } = await scope.widget.put(WidgetBody.parse({ ...enabled, display: { theme: 'dark' } }));
    const earlier = parseStored(WidgetRecord.omit({ display: true }), await readFile(file, 'utf8'));
    expect(earlier).toMatchObject({ status: 'ok', value: { enabled: true, display: { theme: 'dark' } } });
    const { display, ...rest } = WidgetRecord.parse(JSON.parse(await readFile(file, 'utf8')));
    expect(display.theme).toBe('dark');
    await writeFile(file, JSON.stringify(rest));
    expect((await tenants.openWidget(key ?? '')).widget.display).toMatchObject({ theme: 'auto', launcher: 'shown', texts: {} });
  });

  it('that are damaged answer no visitor, report it, and are made anew', async () => {
    const { key } = await scope.widget.put(enabled);
    await writeFile(file, '{"version":1,"enabled":true');
    await expect(tenants.openWidget(key ?? '')).rejects.toMatchObject({ code: 'invalid_key' });
    expect(await scope.widget.view()).toMatchObject({ enabled: false, problem: expect.stringContaining('damaged') });
    expect(await scope.widget.put(enabled)).toMatchObject({ enabled: true, problem: null });
  });
});
