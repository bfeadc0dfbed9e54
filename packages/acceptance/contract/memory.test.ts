import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { MemoryHit, MemoryNote } from '@concierge/contract';
import { eventually, status } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, untilListed, type Tenant } from './fixture.ts';

let contract: ContractSystem;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start({ embeddings: true }, { synonyms: [['refund', 'erstattung', 'reimbursed', 'money']] }));
});

const Reply = z.object({
  contact_id: z.string(),
  toolCalls: z.array(z.object({ name: z.string(), output: z.string(), isError: z.boolean() })),
});
const Notes = z.object({ notes: z.array(MemoryNote) });
const Found = z.object({ hits: z.array(MemoryHit), unread: z.object({ notes: z.number(), sessions: z.number() }) });

/** What an owner's search gives, once it had the time to read all there is. */
async function find(tenant: Tenant, query: string): Promise<z.infer<typeof Found>> {
  return eventually(async () => {
    const found = Found.parse((await tenant.as('read').get(`/api/memory?${query}`)).json());
    return found.unread.notes + found.unread.sessions === 0 ? found : undefined;
  });
}

interface Turn {
  readonly agent?: 'admin' | 'cs';
  readonly sender?: string;
  readonly contactId?: string;
}

/** One whole turn in which the model calls this tool; what the tool gave. */
async function use(tenant: Tenant, call: { name: string; input: object }, { agent = 'admin', sender, contactId }: Turn = {}) {
  const message = `[[tools:${call.name} ${JSON.stringify(call.input)}]] [[say:done]]`;
  const body = { message, ...(sender !== undefined && { sender }), ...(contactId !== undefined && { contact_id: contactId }) };
  const answer = await tenant.as('admin').ask(agent, body);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  const { toolCalls, contact_id: session } = Reply.parse(answer.json());
  const [made] = toolCalls;
  if (made === undefined) throw new Error('the tool was not called');
  return { ...made, session };
}

const search = async (tenant: Tenant, query: string, turn: Turn = {}) => use(tenant, { name: 'memory_search', input: { query } }, turn);
const write = async (tenant: Tenant, text: string, turn: Turn & { title?: string } = {}) =>
  use(tenant, { name: 'memory_write', input: { text, title: turn.title ?? 'Note' } }, turn);

describe('GET /api/memory', () => {
  promise(['C/4/9'], 'lists the owner’s notes, and finds passages of notes and sessions', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('read');
    await write(tenant, 'The blue lamp costs forty euros.', { title: 'Lamps' });
    const { session } = await use(tenant, { name: 'status', input: {} }, { agent: 'cs', sender: 'anna' });
    await write(tenant, 'Anna wants a lamp.', { agent: 'cs', sender: 'anna', title: 'Private' });
    await untilListed(tenant, 3);
    const { notes } = Notes.parse((await client.get('/api/memory')).json());
    expect(notes.map(({ ref }) => ref)).toEqual(['memory/lamps.md', 'MEMORY.md']);
    const { hits } = await find(tenant, 'q=lamp&limit=1');
    expect(hits).toMatchObject([{ kind: 'note', ref: 'memory/lamps.md', title: 'Lamps', snippet: expect.stringContaining('forty euros') }]);
    const { hits: all } = await find(tenant, `q=${encodeURIComponent('LÄMP status')}`);
    expect(all.map(({ ref }) => ref)).toContain(session);
    expect(all.filter(({ kind }) => kind === 'note').map(({ ref }) => ref)).toEqual(['memory/lamps.md']);
    for (const query of ['q=', 'limit=0', 'limit=51', 'q=x&extra=1', `q=${'x'.repeat(1001)}`]) {
      expect((await client.get(`/api/memory?${query}`)).status).toBe(400);
    }
  });

  promise(['SI/what-the-service-does/11', 'C/4/9'], 'answers the same after the index was deleted', async () => {
    const tenant = await contract.tenant();
    for (const name of ['one', 'two', 'three']) await write(tenant, `The ${name} lamp.`, { title: name });
    await untilListed(tenant, 3);
    const answers = async (): Promise<unknown[]> => Promise.all(['lamp', 'two', 'thre'].map(async (query) => find(tenant, `q=${query}`)));
    const before = await answers();
    await contract.system.dropIndex(tenant.tenantId);
    await rm(join(contract.system.dataDir, 'index', tenant.tenantId), { recursive: true, force: true });
    expect(await answers()).toEqual(before);
  });
});

describe('an agent’s memory', () => {
  promise(['SI/what-the-service-does/2'], 'is kept in one conversation and found in another, until it is to be forgotten', async () => {
    const tenant = await contract.tenant();
    expect(await write(tenant, 'The supplier of lamps is Nordlicht.', { title: 'Suppliers' })).toMatchObject({ isError: false });
    expect((await search(tenant, 'who is our suplier of lamps?')).output).toContain('memory/suppliers.md, line');
    expect((await use(tenant, { name: 'memory_get', input: { ref: 'memory/suppliers.md' } })).output).toContain('Nordlicht');
    expect(await use(tenant, { name: 'memory_forget', input: { ref: 'memory/suppliers.md' } })).toMatchObject({ isError: false });
    const left = await use(tenant, { name: 'memory_search', input: { query: 'Nordlicht', scope: 'notes' } });
    expect(left.output).toBe('Nothing was found. Try other words, or fewer.');
  });

  it('finds earlier conversations, those of customers too, and leads to the whole of them', async () => {
    const tenant = await contract.tenant();
    const asked = await tenant.as('cs').ask('cs', { message: 'My quokka plush arrived torn. [[say:We send a new one.]]', sender: 'anna' });
    const { contact_id: id } = Reply.parse(asked.json());
    await untilListed(tenant, 1);
    const { output } = await use(tenant, { name: 'memory_search', input: { query: 'torn quokka', scope: 'conversations' } });
    expect(output).toContain(`1. conversation ${id}, message #1`);
    const history = await use(tenant, { name: 'session_history', input: { session_id: id, query: 'new one' } });
    expect(history.output).toContain('We send a new one.');
  });

  promise(['SI/post-api-cs/4'], 'of one contact is found for no other, nor for a stranger, nor by the owner', async () => {
    const tenant = await contract.tenant();
    const anna = { agent: 'cs', sender: 'anna' } as const;
    await write(tenant, 'canary-of-anna', { ...anna, title: 'Anna' });
    await write(tenant, 'canary-of-the-owner', { title: 'Owner' });
    await tenant.as('cs').ask('cs', { message: 'My word is canary-said-by-anna [[say:fine]]', sender: 'anna' });
    await untilListed(tenant, 3);
    const own = await search(tenant, 'canary', anna);
    expect(own.output).toContain('canary-of-anna');
    expect(own.output).toContain('canary-said-by-anna');
    expect(own.output).not.toContain('canary-of-the-owner');
    const stranger = await use(tenant, { name: 'status', input: {} }, { agent: 'cs' });
    for (const turn of [{ sender: 'ben' }, {}, { contactId: stranger.session }]) {
      const { output } = await search(tenant, 'canary', { agent: 'cs', ...turn });
      expect(output).not.toContain('canary-');
      const forbidden = await use(
        tenant,
        { name: 'session_history', input: { session_id: own.session, query: 'canary' } },
        { agent: 'cs', ...turn },
      );
      expect(forbidden).toMatchObject({ isError: true });
      expect(forbidden.output).not.toContain('canary-');
      expect(await use(tenant, { name: 'memory_get', input: { ref: 'memory/anna.md' } }, { agent: 'cs', ...turn })).toMatchObject({
        isError: true,
      });
    }
    const owners = await use(tenant, { name: 'memory_search', input: { query: 'canary', scope: 'notes' } });
    expect(owners.output).toContain('canary-of-the-owner');
    expect(owners.output).not.toContain('canary-of-anna');
    expect(await use(tenant, { name: 'memory_forget', input: { ref: 'memory/anna.md' } }, anna)).toMatchObject({ isError: true });
  });

  it('is found by meaning, each passage embedded once, with the key of the embeddings', async () => {
    const tenant = await contract.tenant();
    await write(tenant, 'Die Erstattung dauert fünf Tage.', { title: 'Geld zurück' });
    contract.model.embeddings.requests.splice(0);
    expect((await search(tenant, 'when am I reimbursed')).output).toContain('memory/geld-zurück.md');
    const first = contract.model.embeddings.requests.splice(0);
    expect(first.flatMap(({ inputs }) => inputs).filter((text) => text.startsWith('Geld zurück\n'))).toHaveLength(1);
    expect(first[0]?.headers.authorization).toBe('Bearer embeddings-key');
    await search(tenant, 'when am I reimbursed');
    expect(contract.model.embeddings.inputs.filter((text) => text.startsWith('Geld zurück\n'))).toEqual([]);
  });

  it('is found by words when the embeddings provider is down, and the agent is notified', async () => {
    const tenant = await contract.tenant();
    await write(tenant, 'A refund takes five days.', { title: 'Refunds' });
    contract.model.embeddings.enqueue(...Array.from({ length: 4 }, () => [status(503)]));
    const { output, isError } = await search(tenant, 'refund');
    expect([isError, output]).toEqual([false, expect.stringContaining('memory/refunds.md')]);
    expect(output).toContain('searched by words alone');
    expect((await search(tenant, 'refund')).output).not.toContain('searched by words alone');
  });

  promise(['SI/limits/4', 'C/5/7'], 'that is full is a tool error which the agent can explain', async () => {
    const tenant = await contract.tenant();
    const scope = await contract.system.scope(tenant.tenantId);
    await scope.updateSettings({ limits: { memoryBytes: 100 } });
    const outcome = await write(tenant, 'x'.repeat(200));
    expect(outcome).toMatchObject({ isError: true, output: expect.stringContaining('Nothing was kept') });
    expect(outcome.output).toContain('100 bytes');
  });
});
