import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FILE_VERSIONS_MAX, FileHistoryView, Problem } from '@concierge/contract';
import { setUpEach } from '@concierge/testing/set-up';
import { removeExpired } from '@concierge/tenant';
import type { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpEach(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

async function put(path: string, body: string): Promise<void> {
  const headers = { 'Content-Type': 'text/plain' };
  expect((await gateway.ask(tenant.admin, `/api/files/${path}`, { method: 'PUT', body, headers })).ok).toBe(true);
}

async function versions(path: string, id = ''): Promise<z.infer<typeof FileHistoryView>['versions']> {
  const answer = await gateway.ask(tenant.read, `/api/file-history/${path}${id === '' ? '' : `?id=${id}`}`);
  expect(answer.status).toBe(200);
  return FileHistoryView.parse(await answer.json()).versions;
}

async function restore(path: string, id: string): Promise<Response> {
  return gateway.ask(tenant.admin, `/api/file-history/${path}`, { method: 'POST', body: { id } });
}

const text = async (path: string): Promise<string> => (await gateway.ask(tenant.read, `/api/files/${path}`)).text();

describe('the history of a file', () => {
  it('names who changed it and when, and has each text', async () => {
    const path = 'skills/refunds/NOTES.md';
    await put(path, 'one');
    await tenant.scope.fileHistory.writer({ kind: 'agent', agent: 'admin', turnId: 't_1' }).writeText(path, 'two');
    // By something that leaves no name, such as a command in the sandbox.
    await tenant.scope.files.writeText(path, 'three');
    await put(path, 'four');
    const found = await versions(path);
    expect(found.map(({ by }) => by?.kind ?? null)).toEqual(['key', null, 'agent', 'key']);
    const texts = await Promise.all(found.map(async ({ id }) => (await versions(path, id)).find((version) => version.id === id)?.text));
    expect(texts).toEqual(['four', 'three', 'two', 'one']);
  });

  it('gives a version back, also of a deleted file', async () => {
    await put('SOUL.md', 'Be brief.');
    await put('SOUL.md', 'Be long.');
    const brief = (await versions('SOUL.md')).at(1)?.id ?? '';
    expect((await gateway.ask(tenant.admin, '/api/files/SOUL.md', { method: 'DELETE' })).status).toBe(204);
    expect(await versions('SOUL.md')).toMatchObject([{ isRemoved: true, by: { kind: 'key' } }, {}, {}, {}]);
    expect((await restore('SOUL.md', brief)).status).toBe(200);
    expect(await text('SOUL.md')).toBe('Be brief.');
    expect(Problem.parse(await (await restore('SOUL.md', '001760000000000-0123abcd')).json()).code).toBe('not_found');
    expect(Problem.parse(await (await restore('AGENTS.md', brief)).json()).code).toBe('not_found');
  });

  it('keeps the last versions, and nothing of notes', async () => {
    for (let round = 0; round < FILE_VERSIONS_MAX + 3; round += 1) await put('templates/offer.md', `round ${String(round)}`);
    expect(await versions('templates/offer.md')).toHaveLength(FILE_VERSIONS_MAX);
    await put('MEMORY.md', 'The safe is behind the picture.');
    await put('memory/recipe.md', 'Two spoons of sugar.');
    expect([await versions('MEMORY.md'), await versions('memory/recipe.md')]).toEqual([[], []]);
  });

  it('is reached by no path of the tenant’s files', async () => {
    await put('SOUL.md', 'Be brief.');
    const folder = join(tenant.scope.root, 'settings', 'history');
    expect(await readdir(folder)).toHaveLength(1);
    expect((await gateway.ask(tenant.admin, '/api/files?path=settings/history')).status).toBe(404);
    await expect(tenant.scope.files.list('settings/history')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('ends with the days of the retention rule', async () => {
    await put('SOUL.md', 'Be brief.');
    const rule = { historyDays: 30 };
    await removeExpired(tenant.scope, { rule, nowMs: Date.now() + 29 * 24 * 3_600_000 });
    expect((await versions('SOUL.md')).length).toBeGreaterThan(0);
    await removeExpired(tenant.scope, { rule, nowMs: Date.now() + 31 * 24 * 3_600_000 });
    expect(await versions('SOUL.md')).toEqual([]);
  });
});
