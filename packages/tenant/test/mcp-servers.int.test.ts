import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { McpServerBody } from '@concierge/contract';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Tenants, TenantScope } from '../src/index.ts';

let tenants: Tenants;

setUpOnce(async (stack) => {
  ({ tenants } = stack.use(await TestTenants.start()));
});

let count = 0;
async function tenant(): Promise<{ scope: TenantScope; fileOf: (name: string) => string }> {
  count += 1;
  const scope = await tenants.create(`acme-${String(count)}`);
  return { scope, fileOf: (name) => join(scope.root, 'mcp', `${name}.json`) };
}
const body = (own: Partial<McpServerBody> = {}): McpServerBody => McpServerBody.parse({ url: 'https://mcp.example.com/mcp', ...own });

describe('attached MCP servers', () => {
  it('are kept in a file each, their headers sealed and never shown', async () => {
    const { scope, fileOf } = await tenant();
    const { view, created } = await scope.mcp.put('crm', body({ headers: { Authorization: 'Bearer t0ken' } }));
    expect(created).toBe(true);
    expect(view).toMatchObject({ name: 'crm', headers: ['Authorization'], agents: ['admin'], problem: null });
    expect(await readFile(fileOf('crm'), 'utf8')).not.toContain('t0ken');
    expect(await scope.mcp.list()).toEqual([view]);
    expect(await scope.mcp.attachedTo('admin')).toMatchObject([{ name: 'crm', headers: { Authorization: 'Bearer t0ken' } }]);
    await scope.mcp.remove('crm');
    expect(await scope.mcp.list()).toEqual([]);
    await expect(scope.mcp.find('crm')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('keep a header that is not sent again, and have another revision after every change', async () => {
    const { scope } = await tenant();
    await scope.mcp.put('crm', body({ headers: { Authorization: 'one' } }));
    const [before] = await scope.mcp.attachedTo('admin');
    expect((await scope.mcp.put('crm', body({ headers: { Authorization: null }, timeoutMs: 2000 }))).created).toBe(false);
    const [after] = await scope.mcp.attachedTo('admin');
    expect(after).toMatchObject({ headers: { Authorization: 'one' }, timeoutMs: 2000 });
    expect(after?.revision).not.toBe(before?.revision);
    await expect(scope.mcp.put('other', body({ headers: { Authorization: null } }))).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('belong to the agents they name, and to none while they are switched off', async () => {
    const { scope } = await tenant();
    await scope.mcp.put('open', body({ agents: ['cs', 'shop'] }));
    await scope.mcp.put('off', body({ agents: ['cs'], enabled: false }));
    expect((await scope.mcp.attachedTo('cs')).map(({ name }) => name)).toEqual(['open']);
    expect(await scope.mcp.attachedTo('admin')).toEqual([]);
  });

  it('are reported, not used, when their file is broken or sealed for another tenant', async () => {
    const { scope, fileOf } = await tenant();
    await scope.mcp.put('crm', body({ headers: { 'X-Key': 'secret' } }));
    const elsewhere = await tenant();
    await elsewhere.scope.mcp.put('crm', body({ headers: { 'X-Key': 'other' } }));
    await writeFile(elsewhere.fileOf('crm'), await readFile(fileOf('crm'), 'utf8'));
    expect(await elsewhere.scope.mcp.attachedTo('admin')).toEqual([]);
    await expect(elsewhere.scope.mcp.open('crm')).rejects.toMatchObject({ code: 'conflict' });
    await writeFile(fileOf('crm'), '{');
    expect((await scope.mcp.find('crm')).problem).toContain('JSON');
    expect(await scope.mcp.attachedTo('admin')).toEqual([]);
  });

  it('are at most twenty', async () => {
    const { scope } = await tenant();
    for (let number = 0; number < 20; number += 1) await scope.mcp.put(`s${String(number)}`, body());
    await expect(scope.mcp.put('one-more', body())).rejects.toMatchObject({ code: 'invalid_request' });
    await scope.mcp.put('s3', body({ enabled: false }));
  });

  it('are not to be seen or written through the tenant’s files', async () => {
    const { scope } = await tenant();
    await scope.mcp.put('crm', body());
    await expect(scope.files.readText('mcp/crm.json')).rejects.toMatchObject({ code: 'not_found' });
    await expect(scope.files.writeText('MCP/crm.json', '{}')).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('what may be attached', () => {
  it.each([
    { url: 'ftp://example.com' },
    { url: 'https://user:secret@example.com' },
    { url: 'not a url' },
    { url: 'https://example.com', headers: { Host: 'elsewhere' } },
    { url: 'https://example.com', headers: { 'X Y': 'a' } },
    { url: 'https://example.com', headers: { 'X-Y': 'line\r\nbreak' } },
    { url: 'https://example.com', agents: [] },
    { url: 'https://example.com', timeoutMs: 10 },
    { url: 'https://example.com', command: 'npx' },
  ])('is not %j', (given) => {
    expect(McpServerBody.safeParse(given).success).toBe(false);
  });
});
