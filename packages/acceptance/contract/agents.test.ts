import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { AgentView, ChatReply, SessionListItem, TurnView, UsageReport } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Client } from './client.ts';
import { ContractSystem, promise, untilListed, type Tenant } from './fixture.ts';

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
  tenant = await contract.tenant();
});

async function put(path: string, text: string): Promise<void> {
  const headers = { 'content-type': 'text/markdown' };
  const answer = await tenant.as('admin').request(`/api/files/${path}`, { method: 'PUT', rawBody: text, headers });
  expect(answer.status).toBeLessThan(300);
}

async function ask(client: Client, agent: string, body: object): Promise<ChatReply> {
  const answer = await client.request(`/api/agents/${agent}`, { body, headers: { accept: 'application/json' } });
  expect(answer.status).toBe(200);
  return ChatReply.parse(answer.json());
}

const Offered = z.object({ tools: z.array(z.object({ function: z.object({ name: z.string() }) })).default([]) });

/** What the model was sent for the turn with this in its message. */
function findRequest(marker: string): { system: string; tools: string[] } {
  const request = contract.model.requests.findLast(({ userText }) => userText.includes(marker));
  return {
    system: JSON.stringify(request?.body.messages[0]?.content),
    tools: Offered.parse(request?.raw).tools.map((tool) => tool.function.name),
  };
}

describe('an agent of a tenant’s own', () => {
  promise(
    ['C/4/10', 'SI/what-the-service-does/15', 'SI/versioning/3'],
    'works for its owner by its file: prompt, tools and bounds, in lists and sums',
    async () => {
      await put('MEMORY.md', 'owner-only-memory');
      await put(
        'agents/books.md',
        '---\ndescription: Keeps books\ntools: [write, list_files, bash]\nmaxTurns: 2\n---\nbooks-are-kept-so\n',
      );
      const admin = tenant.as('admin');
      const message = 'books-one [[tools:write {"path":"memory/b.md","content":"b"}]] [[tools:read {"path":"SOUL.md"}]] [[say:kept]]';
      const reply = await ask(admin, 'books', { message });
      expect(reply).toMatchObject({ reply: 'kept', finishReason: 'max_turns', toolCalls: [{ isError: false }, { isError: true }] });
      expect(reply.toolCalls[1]?.output).toContain('There is no tool "read"');
      const first = contract.model.requests.find(({ userText }) => userText.includes('books-one'));
      expect(Offered.parse(first?.raw).tools.map((tool) => tool.function.name)).toEqual(expect.arrayContaining(['write', 'list_files']));
      expect(Offered.parse(first?.raw).tools.map((tool) => tool.function.name)).not.toContain('read');
      const { system } = findRequest('books-one');
      expect(system).toContain('books-are-kept-so');
      expect(system).toContain('owner-only-memory');
      await untilListed(tenant, 1);
      const sessions = z.array(SessionListItem).parse((await admin.get('/api/sessions?agent=books')).json());
      expect(sessions).toMatchObject([{ id: reply.contact_id, agent: 'books', title: expect.stringContaining('books-one') }]);
      expect(TurnView.parse((await admin.get(`/api/turns/${reply.turnId}`)).json())).toMatchObject({ agent: 'books', status: 'done' });
      const usage = UsageReport.parse((await admin.get('/api/usage')).json());
      expect(usage.items.filter(({ agent }) => agent === 'books')).toMatchObject([{ turns: 1, calls: 3 }]);
      const agents = z.array(AgentView).parse((await tenant.as('read').get('/api/agents')).json());
      expect(agents.map(({ name }) => name)).toEqual(expect.arrayContaining(['admin', 'cs', 'books']));
    },
  );

  promise(['C/4/10', 'C/2/2'], 'is for strangers when it is public: cs’ tools and the contact’s memory, with any key', async () => {
    await put('MEMORY.md', 'owner-only-memory');
    await put(
      'agents/guide.md',
      '---\ndescription: Shows around\ntools: [read, write, memory_write, subagents]\npublic: true\n---\nguide-so\n',
    );
    for (const key of ['cs', 'admin'] as const) {
      const message = `guide-${key} [[tools:write {"path":"memory/x.md","content":"x"}; memory_write {"text":"likes-blue-${key}"}; subagents {"action":"list"}]] [[say:done]]`;
      const reply = await ask(tenant.as(key), 'guide', { message, sender: `ann-${key}` });
      expect(reply.toolCalls.map(({ isError }) => isError)).toEqual([true, false, true]);
      const { system, tools } = findRequest(`guide-${key}`);
      expect(tools).toEqual(['read', 'memory_write']);
      expect(system).toContain('guide-so');
      expect(system).not.toContain('owner-only');
    }
    await ask(tenant.as('cs'), 'guide', { message: 'guide-again', sender: 'ann-cs' });
    expect(findRequest('guide-again').system).toContain('likes-blue-cs');
    expect(findRequest('guide-again').system).not.toContain('likes-blue-admin');
    await tenant.as('admin').request('/api/tenant', { method: 'PATCH', body: { agents: { guide: { tools: ['read', 'status'] } } } });
    await ask(tenant.as('cs'), 'guide', { message: 'guide-narrow', sender: 'ann-cs' });
    expect(findRequest('guide-narrow').tools).toEqual(['read']);
    expect((await tenant.as('admin').get('/api/files/memory/x.md')).status).toBe(404);
  });

  promise(['C/4/10', 'C/5/3'], 'is refused where it must be, and its file’s fault is reported', async () => {
    await put('agents/private.md', '---\ndescription: For the owner\n---\n');
    await put('agents/broken.md', '---\ndescription: x\nmaxTurn: 3\n---\n');
    const post = async (client: Client, agent: string): Promise<number> =>
      (await client.request(`/api/agents/${agent}`, { body: { message: 'x' } })).status;
    expect(await post(tenant.as('cs'), 'private')).toBe(403);
    expect(await post(tenant.as('cs'), 'admin')).toBe(403);
    expect(await post(tenant.as('admin'), 'nobody')).toBe(404);
    expect(await post(tenant.as('admin'), 'broken')).toBe(404);
    const agents = z.array(AgentView).parse((await tenant.as('admin').get('/api/agents')).json());
    expect(agents.find(({ name }) => name === 'broken')?.problem).toContain('maxTurn');
  });

  promise(
    ['C/4/10'],
    'that is gone, spoilt or made private before its turn runs ends that turn in an error, and nothing more',
    async () => {
      const file = (front: string): string => `---\ndescription: x\n${front}---\nsecret-part\n`;
      const turnsThat = async (status: string): Promise<TurnView[]> =>
        z.array(TurnView).parse((await tenant.as('admin').get(`/api/turns?status=${status}`)).json());
      const changes: readonly (readonly [string, string, () => Promise<unknown>])[] = [
        ['gone', 'not_found', async () => tenant.as('admin').request('/api/files/agents/gone.md', { method: 'DELETE' })],
        ['spoilt', 'not_found', async () => put('agents/spoilt.md', file('typo: 1\n'))],
        ['closed', 'scope_required', async () => put('agents/closed.md', file(''))],
      ];
      for (const [agent, code, change] of changes) {
        await put(`agents/${agent}.md`, file('public: true\n'));
        const client = tenant.as('cs');
        const sender = `of-${agent}`;
        const first = client.request(`/api/agents/${agent}`, { body: { message: `first-${agent} [[hang]]`, sender } });
        await eventually(() => contract.model.requests.some(({ userText }) => userText.includes(`first-${agent}`)));
        const late = client.request(`/api/agents/${agent}`, { body: { message: `late-${agent}`, sender } });
        await eventually(async () => (await turnsThat('waiting')).length === 1);
        await change();
        const [running] = await turnsThat('running');
        expect((await client.request(`/api/turns/${running?.id ?? ''}/cancel`, { method: 'POST' })).status).toBe(202);
        await first;
        const last = (await late).events().at(-1);
        expect(last).toMatchObject({ type: 'error', data: { code, retryable: false } });
        expect(contract.model.requests.some(({ userText }) => userText.includes(`late-${agent}`))).toBe(false);
        await eventually(async () => {
          const sessions = z.array(SessionListItem).parse((await tenant.as('admin').get(`/api/sessions?agent=${agent}`)).json());
          expect(sessions.length).toBeLessThan(2);
          return sessions[0]?.messageCount === 2;
        });
      }
    },
  );
});
