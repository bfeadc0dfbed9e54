import { randomBytes } from 'node:crypto';
import { copyFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { ModelKeyView, TurnView, UsageReport } from '@concierge/contract';
import { callTools, contextOverflow, eventually, say, status, usage, type RecordedRequest, type ScriptedModel } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestSystem, type Tenant } from './test-system.ts';

const oneDollar = usage({ promptTokens: 9990, completionTokens: 10 });

let whole: TestSystem;
let model: ScriptedModel;

setUpOnce(async (stack) => {
  whole = stack.use(await TestSystem.start({ price: { input: 100, output: 100 }, fallbackModels: ['second'], embeddings: true }));
  ({ model } = whole);
});

function newKey(): string {
  return `sk-own-${randomBytes(16).toString('hex')}`;
}

async function request({ keys, url }: Tenant, path: string, init: { method?: string; body?: unknown } = {}): Promise<Response> {
  const headers = { 'x-api-key': keys.admin, 'content-type': 'application/json', accept: 'application/json' };
  const body = init.body === undefined ? null : JSON.stringify(init.body);
  return await fetch(`${url}${path}`, { method: init.method ?? 'GET', headers, body });
}

async function ask(tenant: Tenant, message: string): Promise<Response> {
  return request(tenant, '/api/admin', { method: 'POST', body: { message } });
}

async function useOwnKey(tenant: Tenant, apiKey: string): Promise<void> {
  whole.system.logSearch.plant('a tenant’s own key', apiKey);
  expect((await request(tenant, '/api/model-keys/test', { method: 'PUT', body: { apiKey } })).status).toBe(200);
}

async function tenantWithKey(apiKey = newKey()): Promise<{ readonly tenant: Tenant; readonly apiKey: string }> {
  const tenant = await whole.tenant();
  await useOwnKey(tenant, apiKey);
  return { tenant, apiKey };
}

function requestsAbout(text: string): RecordedRequest[] {
  return model.requests.filter(({ body }) => JSON.stringify(body).includes(text));
}

/** Which keys were shown to the provider with requests about this. */
function keysAbout(text: string): Set<string | undefined> {
  return new Set(requestsAbout(text).map(({ headers }) => headers.authorization));
}

async function report(tenant: Tenant): Promise<UsageReport> {
  return UsageReport.parse(await (await request(tenant, '/api/usage')).json());
}

describe('a tenant with a key of its own', () => {
  it('has its replies, fallbacks and summaries made with it, and the others go on with the operator’s', async () => {
    const { tenant, apiKey } = await tenantWithKey();
    model.when('the falling word', [status(503)], [status(503)], [status(503)], [say('from the second')]);
    expect((await ask(tenant, 'the falling word')).status).toBe(200);
    expect(requestsAbout('the falling word').map(({ body }) => body.model)).toEqual(['scripted', 'scripted', 'scripted', 'second']);
    expect(keysAbout('the falling word')).toEqual(new Set([`Bearer ${apiKey}`]));

    const first = await ask(tenant, `the long word ${'tell me more about it. '.repeat(400)}`);
    const { contact_id: contactId } = z.looseObject({ contact_id: z.string() }).parse(await first.json());
    model.when('the last word', contextOverflow, [say('answered')]);
    const last = await request(tenant, '/api/admin', { method: 'POST', body: { message: 'the last word', contact_id: contactId } });
    expect(last.status).toBe(200);
    expect(requestsAbout('the long word').some(({ body }) => !JSON.stringify(body).includes('the last word'))).toBe(true);
    expect(keysAbout('the long word')).toEqual(new Set([`Bearer ${apiKey}`]));

    const other = await whole.tenant();
    expect((await ask(other, 'the other word')).status).toBe(200);
    expect(requestsAbout('the other word').map(({ body }) => body.model)).toEqual(['scripted']);
    expect([...keysAbout('the other word')]).toEqual([expect.stringMatching(/^Bearer worker-0\./u)]);
  });

  it('has its memory searched by meaning with it', async () => {
    const { tenant, apiKey } = await tenantWithKey();
    const search = { name: 'memory_search', args: { query: 'the searched word' } };
    await tenant.scope.files.writeText('memory/notes.md', '# Garden\n\nThe tulips are by the wall.');
    model.when('look it up', [callTools([search])], [say('done')]);
    expect((await ask(tenant, 'look it up')).status).toBe(200);
    const asked = model.embeddings.requests.filter(({ inputs }) => inputs.some((text) => text.includes('the searched word')));
    expect(new Set(asked.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${apiKey}`]));
    const { items } = await eventually(async () => {
      const found = await report(tenant);
      return found.items.some(({ model: name }) => name === 'test/embedding') ? found : undefined;
    });
    expect(items.find(({ model: name }) => name === 'test/embedding')).toMatchObject({ ownKey: true, calls: 2 });
  });

  it('sees the calls marked in its usage, and no budget counts them', async () => {
    const { tenant } = await tenantWithKey();
    await tenant.scope.updateSettings({ limits: { usdPerDay: 1 } });
    model.when('the paid word', [say('one'), oneDollar], [say('two'), oneDollar], [say('three'), oneDollar]);
    for (const _ of [1, 2]) expect((await ask(tenant, 'the paid word')).status).toBe(200);
    const { items, budgets } = await eventually(async () => {
      const found = await report(tenant);
      return found.total.turns === 2 ? found : undefined;
    });
    expect(items).toMatchObject([{ model: 'test/scripted', ownKey: true, calls: 2, costUsd: 2 }]);
    expect(budgets?.items).toMatchObject([{ spent: 0, reserved: 0, left: 1 }]);
    expect((await request(tenant, '/api/model-keys/test', { method: 'DELETE' })).status).toBe(204);
    expect((await ask(tenant, 'the paid word')).status).toBe(200);
    const after = await eventually(async () => {
      const found = await report(tenant);
      return found.total.turns === 3 ? found : undefined;
    });
    expect(after.items.map(({ ownKey, calls }) => [ownKey, calls])).toEqual(
      expect.arrayContaining([
        [true, 2],
        [undefined, 1],
      ]),
    );
    expect(after.budgets?.items).toMatchObject([{ spent: 1 }]);
  });
});

describe('what a search by meaning takes', () => {
  it('is in the turn’s record, in the usage and in the budget', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.updateSettings({ limits: { tokensPerDay: 1_000_000 } });
    await tenant.scope.files.writeText('memory/notes.md', '# Garden\n\nThe roses are by the gate.');
    const search = { name: 'memory_search', args: { query: 'the wanted rose' } };
    const inShell = { name: 'bash', args: { command: 'concierge memory_search --query "the other rose"' } };
    model.when('look for roses', [callTools([search])], [callTools([inShell])], [say('done')]);
    const before = model.embeddings.requests.length;
    const { turnId } = z.looseObject({ turnId: z.string() }).parse(await (await ask(tenant, 'look for roses')).json());
    const calls = model.embeddings.requests.length - before;
    const { items, budgets } = await eventually(async () => {
      const found = await report(tenant);
      return found.items.some(({ model: name }) => name === 'test/embedding') ? found : undefined;
    });
    const embedded = items.find(({ model: name }) => name === 'test/embedding');
    expect(embedded).toMatchObject({ calls, outputTokens: 0 });
    expect(embedded?.inputTokens).toBeGreaterThan(0);
    const all = items.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);
    expect(budgets?.items).toMatchObject([{ unit: 'tokens', spent: all }]);
    const view = TurnView.parse(await (await request(tenant, `/api/turns/${turnId}`)).json());
    expect(view.usage.inputTokens + view.usage.outputTokens).toBe(all);
  });
});

describe('a search by meaning beyond the budget', () => {
  it('is made by words alone: a call for embeddings is reserved before it is made', async () => {
    const tenant = await whole.tenant();
    await tenant.scope.updateSettings({ limits: { tokensPerDay: 10_000 } });
    await tenant.scope.files.writeText('memory/notes.md', '# Garden\n\nThe lilies are by the pond.');
    const search = { name: 'memory_search', args: { query: 'the unpaid lily' } };
    model.when('spend it all', [callTools([search]), oneDollar], [say('never asked')]);
    const refused = await ask(tenant, 'spend it all');
    expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('budget_exceeded')]);
    expect(model.embeddings.inputs.filter((text) => text.includes('lil'))).toEqual([]);
  });
});

describe('a refusal of the own key', () => {
  it('is told to the owner with its reason, cools nothing down, and the operator does not pay', async () => {
    const { tenant, apiKey } = await tenantWithKey();
    // Some write the status once more as the code, and all of them like to quote the key.
    const refused = [status(401, { body: { error: { message: `Incorrect API key provided: ${apiKey}`, code: 401 } } })];
    model.when('the refused word', refused, refused);
    const answer = await ask(tenant, 'the refused word');
    const text = await answer.text();
    expect(answer.status).toBe(502);
    expect(text).toContain('called with the own key of the tenant: the provider does not accept the key (401)');
    expect(keysAbout('the refused word')).toEqual(new Set([`Bearer ${apiKey}`]));
    // On a busy machine the list may be behind the answer.
    const turn = await eventually(async () => {
      const [found] = z.array(TurnView).parse(await (await request(tenant, '/api/turns')).json());
      return found?.endedAt == null ? undefined : found;
    });
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'provider_error', retryable: false } });

    const other = await whole.tenant();
    expect((await ask(other, 'the well word')).status).toBe(200);
    expect(requestsAbout('the well word').map(({ body }) => body.model)).toEqual(['scripted']);

    // What was refused is in the log by now; the key is not.
    const log = await eventually(async () => {
      const printed = await whole.system.readServiceLog('worker-0');
      return printed.includes('Incorrect API key provided: [key]') ? printed : undefined;
    });
    for (const printed of [log, text, await whole.system.readServiceLog('gateway-0')]) expect(printed).not.toContain(apiKey);
  });

  it('is the same for a code or an answer that quotes the key, whole or cut off', async () => {
    const { tenant, apiKey } = await tenantWithKey();
    const quoting = status(403, { body: { error: { message: 'no', code: `denied:${apiKey}` } } });
    const cutOff = status(400, { body: `${'x'.repeat(64 * 1024 - 20)}${apiKey}` });
    model.when('the quoting word', [quoting], [quoting], [cutOff]);
    for (const _ of [1, 2]) expect(await (await ask(tenant, 'the quoting word')).text()).not.toContain(apiKey.slice(0, 12));
    const log = await eventually(async () => {
      const printed = await whole.system.readServiceLog('worker-0');
      return printed.includes('denied:[key]') && printed.includes('xxx[key]') ? printed : undefined;
    });
    expect(log).not.toContain(apiKey.slice(0, 12));
  });

  it('is the answer, too, where the stored key cannot be read', async () => {
    const { tenant, apiKey } = await tenantWithKey();
    const another = await whole.tenant();
    await another.scope.modelKeys.put('test', { apiKey });
    const path = 'settings/model-keys/test.json';
    await copyFile(`${tenant.scope.root}/${path}`, `${another.scope.root}/${path}`);
    const views = await eventually(async () => {
      const found = z.array(ModelKeyView).parse(await (await request(another, '/api/model-keys')).json());
      return found[0]?.problem == null ? undefined : found;
    });
    expect(views).toMatchObject([{ provider: 'test', hint: '' }]);
    const answer = await ask(another, 'the unread word');
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('that key cannot be read')]);
    expect(requestsAbout('the unread word')).toEqual([]);
  });
});
