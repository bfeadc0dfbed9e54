import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { eventually, type System, type TenantKeys } from '@concierge/testing';
import { z } from 'zod';
import { TestSystem } from './test-system.ts';

const Reply = z.object({ contact_id: z.string(), reply: z.string(), finishReason: z.string() });

/** The first thought of the scripted provider. */
const THOUGHT = 'thought-1 of memory_write';
const note = 'memory_write {"text":"Likes tea.","title":"Tea"}';

interface Asked {
  readonly path: string;
  readonly body?: unknown;
  readonly accept?: string;
}

async function ask(system: System, { admin }: TenantKeys, { path, body, accept = 'application/json' }: Asked): Promise<string> {
  const headers = { 'x-api-key': admin, 'content-type': 'application/json', accept };
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return (await fetch(`${system.url}${path}`, { headers, ...sent })).text();
}

describe.each([
  ['gemini', '"thought_signature":'],
  ['deepseek', '"reasoning_content":'],
] as const)('a provider that wants its thoughts back, as %s does', (thinksAs, field) => {
  it('gets them within the turn, after a crash and in the next turn, and no reader does', async () => {
    await using whole = await TestSystem.start({ script: { thinksAs } });
    const { system, model } = whole;
    const tenant = await system.createTenant('acme');
    // The worker is killed between the result of the call and the reply to it.
    const message = `Remember it. [[tools:${note}]] [[fail:hang]] [[say:It is kept.]]`;
    const asked = ask(system, tenant, { path: '/api/admin', body: { message } });
    await eventually(() => model.requests.some(({ round }) => round === 1));
    const [worker] = system.workers;
    await worker?.kill();
    worker?.start();
    const turn = await asked;
    const { contact_id: id, ...answer } = Reply.parse(JSON.parse(turn));
    expect(answer).toEqual({ reply: 'It is kept.', finishReason: 'stop' });
    expect(model.requests.map(({ round }) => round)).toEqual([0, 1, 1]);
    for (const { raw } of model.requests.slice(1)) expect(JSON.stringify(raw)).toContain(`${field}"${THOUGHT}"`);

    const next = { contact_id: id, message: `And? [[tools:${note}]] [[say:Again.]]` };
    const streamed = await ask(system, tenant, { path: '/api/admin', body: next, accept: 'text/event-stream' });
    expect(streamed).toContain('Again.');
    expect(JSON.stringify(model.requests.at(-1)?.raw)).toContain(`${field}"${THOUGHT}"`);
    const openAi = { model: 'admin', messages: [{ role: 'user', content: `Also this. [[tools:${note}]] [[say:Yes.]]` }] };
    const shown = [turn, streamed, await ask(system, tenant, { path: '/v1/chat/completions', body: openAi })];
    expect(shown.at(-1)).toContain('Yes.');
    for (const query of ['', '?limit=10']) shown.push(await ask(system, tenant, { path: `/api/sessions/${id}${query}` }));
    expect(shown.at(-1)).toContain('It is kept.');
    for (const text of shown) expect(text).not.toMatch(/thought-\d|thought_signature|reasoning|"extra"/u);
    const { root } = await system.scope(tenant.tenantId);
    expect(await readFile(join(root, 'sessions', `${id}.json`), 'utf8')).toContain(THOUGHT);
  });
});
