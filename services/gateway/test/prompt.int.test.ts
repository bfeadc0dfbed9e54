import { describe, expect, it } from '@jest/globals';
import { Problem, PromptPreview } from '@concierge/contract';
import { setUpEach } from '@concierge/testing/set-up';
import { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpEach(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

async function put(path: string, text: string): Promise<void> {
  await tenant.scope.files.writeText(path, text);
}

async function preview(query = ''): Promise<PromptPreview> {
  const answer = await gateway.ask(tenant.read, `/api/prompt${query}`);
  expect(answer.status).toBe(200);
  return PromptPreview.parse(await answer.json());
}

/** A conversation whose last turn had this prompt. */
async function converse({ parts }: Pick<PromptPreview, 'parts'>): Promise<string> {
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers, body: { message: 'Hello' } });
  const { contact_id: id } = z.object({ contact_id: z.string() }).parse(await answer.json());
  const session = await tenant.scope.sessions.load(id);
  if (session === undefined) throw new Error('the conversation is not stored');
  const prompt = { at: new Date().toISOString(), ms: 1, parts: parts.map(({ name, tokens }) => ({ name, tokens })) };
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
    expect(parts).toContainEqual({ name: 'SOUL.md', tokens: 100, path: 'SOUL.md', tokensBefore: null, change: null });
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
