import { describe, expect, it } from '@jest/globals';
import { Problem, PromptPreview, toPromptParts, type PromptPart } from '@concierge/contract';
import { measurePart } from '@concierge/tenant';
import { setUpEach } from '@concierge/testing/set-up';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const KeptVersions = z.object({ versions: z.array(z.object({ id: z.string(), text: z.string().optional() })) });

let gateway: TestGateway;
let tenant: TestTenant;

setUpEach(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

async function put(path: string, text: string): Promise<void> {
  await tenant.scope.files.writeText(path, text);
}

/** As the owner does it: through the interface, so that it has a history. */
async function store(path: string, text: string): Promise<void> {
  const answer = await gateway.ask(tenant.admin, `/api/files/${path}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'text/plain' },
    body: text,
  });
  expect(answer.ok).toBe(true);
}

async function preview(query = ''): Promise<PromptPreview> {
  const answer = await gateway.ask(tenant.read, `/api/prompt${query}`);
  expect(answer.status).toBe(200);
  return PromptPreview.parse(await answer.json());
}

/** A conversation whose last turn had this prompt. */
async function converse({ parts }: { readonly parts: readonly PromptPart[] }, route = '/api/admin'): Promise<string> {
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, route, { method: 'POST', headers, body: { message: 'Hello' } });
  const { contact_id: id } = z.object({ contact_id: z.string() }).parse(await answer.json());
  const session = await tenant.scope.sessions.load(id);
  if (session === undefined) throw new Error('the conversation is not stored');
  const prompt = { at: new Date().toISOString(), ms: 1, parts: parts.map(({ name, tokens, digest }) => ({ name, tokens, digest })) };
  const turns = session.turns.map((turn) => ({ ...turn, trace: { waits: [], prompt } }));
  await tenant.scope.sessions.publish({ ...session, revision: session.revision + 1, turns });
  return id;
}

const changes = ({ parts }: PromptPreview): Record<string, unknown> => Object.fromEntries(parts.map(({ name, change }) => [name, change]));

describe('GET /api/prompt', () => {
  it('names each part with its tokens, as the next turn has it', async () => {
    await put('SOUL.md', 'x'.repeat(400));
    await put('agents/buyer.md', `---\ndescription: Buys\ntools: [read]\n---\n${'y'.repeat(80)}`);
    const { agent, parts, tokens, comparedWith } = await preview('?agent=buyer');
    expect({ agent, comparedWith }).toEqual({ agent: 'buyer', comparedWith: null });
    expect(parts).toContainEqual({ name: 'SOUL.md', tokens: 100, path: 'SOUL.md', tokensBefore: null, change: null, version: null });
    expect(parts).toContainEqual(expect.objectContaining({ name: 'agents/buyer.md', tokens: 20 }));
    expect(tokens).toBe(parts.reduce((sum, part) => sum + part.tokens, 0));
    const all = (await preview()).parts.find(({ name }) => name === 'tools')?.tokens ?? 0;
    expect(parts.find(({ name }) => name === 'tools')?.tokens).toBeLessThan(all);
  });

  it('names what has changed since the last turn of a conversation', async () => {
    for (const name of ['IDENTITY.md', 'SOUL.md', 'AGENTS.md']) await put(name, `${name} as it was`);
    await tenant.scope.files.remove('USER.md').catch(() => undefined);
    const id = await converse(await preview());
    expect(changes(await preview(`?session=${id}`))).toMatchObject({ 'IDENTITY.md': 'same', 'SOUL.md': 'same', 'AGENTS.md': 'same' });
    // As long as before: its tokens are the same.
    await put('SOUL.md', 'SOUL.md as it is!');
    await put('USER.md', 'Her name is Ada.');
    await tenant.scope.files.remove('AGENTS.md');
    const now = await preview(`?session=${id}`);
    expect(now).toMatchObject({ agent: 'admin', contact_id: id, comparedWith: { turnId: expect.any(String) } });
    expect(changes(now)).toMatchObject({
      'IDENTITY.md': 'same',
      'SOUL.md': 'changed',
      'USER.md': 'new',
      'AGENTS.md': 'gone',
      history: null,
    });
  });

  it('names the kept version of each file that the last turn had, so that what changed can be shown', async () => {
    const before = { 'SOUL.md': 'Be brief.', 'agents/buyer.md': '---\ndescription: Buys\n---\nBuy little.', 'TOOLS.md': 'Ask the shop.' };
    for (const [path, text] of Object.entries(before)) await put(path, text);
    const parts = toPromptParts([
      measurePart('SOUL.md', 'Be brief.'),
      // Of an agent the prompt has what stands below its front matter.
      measurePart('agents/buyer.md', 'Buy little.'),
      measurePart('TOOLS.md', 'Ask the shop.'),
      measurePart('IDENTITY.md', 'An identity of which no version is kept.'),
    ]);
    const id = await converse({ parts }, '/api/agents/buyer');
    const after = { 'SOUL.md': 'Be loud.', 'agents/buyer.md': '---\ndescription: Buys\n---\nBuy a lot.', 'IDENTITY.md': 'Another one.' };
    // Twice: the version that the turn had is not the newest one.
    for (const round of ['', ' Now.']) {
      for (const [path, text] of Object.entries(after)) await store(path, `${text}${round}`);
    }
    expect((await gateway.ask(tenant.admin, '/api/files/TOOLS.md', { method: 'DELETE' })).status).toBe(204);
    const now = await preview(`?session=${id}`);
    const versions: Record<string, string | null> = Object.fromEntries(now.parts.map(({ name, version }) => [name, version]));
    for (const [path, text] of Object.entries(before)) {
      const { versions: kept } = KeptVersions.parse(
        await (await gateway.ask(tenant.read, `/api/file-history/${path}?id=${versions[path] ?? ''}`)).json(),
      );
      expect({ path, text: kept.find((one) => one.id === versions[path])?.text }).toEqual({ path, text });
    }
    expect(changes(now)).toMatchObject({
      'SOUL.md': 'changed',
      'IDENTITY.md': 'changed',
      'agents/buyer.md': 'changed',
      'TOOLS.md': 'gone',
    });
    expect(versions['IDENTITY.md']).toBeNull();
  });

  it('takes a file that was written again as it was for the same', async () => {
    await put('SOUL.md', 'Be brief.');
    const id = await converse({ parts: toPromptParts([measurePart('SOUL.md', 'Be brief.')]) });
    await store('SOUL.md', 'Be loud.');
    await store('SOUL.md', 'Be brief.');
    expect((await preview(`?session=${id}`)).parts.find(({ name }) => name === 'SOUL.md')).toMatchObject({ change: 'same', version: null });
  });

  it('shows nothing of the owner’s notes in the prompt of an agent for strangers', async () => {
    await put('MEMORY.md', 'The safe is behind the picture.');
    const names = (await preview('?agent=cs')).parts.map(({ name }) => name);
    expect(names).not.toContain('MEMORY.md');
    expect((await preview()).parts.map(({ name }) => name)).toContain('MEMORY.md');
  });

  it.each([
    ['?agent=nobody', 'not_found'],
    [`?session=${'f'.repeat(32)}`, 'not_found'],
    ['?session=../x', 'invalid_request'],
  ])('%s is refused', async (query, code) => {
    expect(Problem.parse(await (await gateway.ask(tenant.read, `/api/prompt${query}`)).json()).code).toBe(code);
  });
});
