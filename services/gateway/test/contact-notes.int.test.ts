import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatReply, NotedContact } from '@concierge/contract';
import { toContactFolder, toNotesOwner, deriveSessionId, type TenantScope } from '@concierge/tenant';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { atRest, TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let scope: TenantScope;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
  ({ scope } = tenant);
});

const ann = 'ann@example.com';
const path = (sender: string, rest = ''): string => `/api/memory/contacts/${toContactFolder(sender)}${rest}`;

async function chat(sender: string | undefined): Promise<ChatReply> {
  const body = { message: 'hello', ...(sender !== undefined && { sender }) };
  const response = await gateway.ask(tenant.admin, '/api/cs', { method: 'POST', headers: { Accept: 'application/json' }, body });
  const reply = ChatReply.parse(await response.json());
  await atRest(tenant);
  return reply;
}

async function listed(query = ''): Promise<NotedContact[]> {
  const response = await gateway.ask(tenant.read, `/api/memory/contacts${query}`);
  expect(response.status).toBe(200);
  return z.array(NotedContact).parse(await response.json());
}

async function readStatus(target: string, method = 'GET'): Promise<number> {
  return (await gateway.ask(tenant.admin, target, { method })).status;
}

/** What a search of the contact's own finds. */
async function found(sender: string, text: string): Promise<string[]> {
  const searcher = { access: 'contact', agent: 'cs', sender, sessionId: '0'.repeat(32) } as const;
  const { hits } = await scope.memorySearch.search(searcher, { text, limit: 10, kinds: ['note'], signal: AbortSignal.timeout(120_000) });
  return hits.map(({ ref }) => ref);
}

describe('notes about contacts', () => {
  it('are listed, found by sender and by conversation, and read', async () => {
    const { contact_id: session } = await chat(ann);
    await scope.contacts.remember({ sender: ann, displayName: 'Ann' });
    await scope.contacts.remember({ sender: 'nothing-noted', displayName: 'Ned' });
    await scope.memory.forContact(ann).write({ text: 'Likes green tea.' });
    await scope.memory.forContact(ann).write({ text: 'Lives in Oslo.', title: 'Address' });
    const [noted, ...others] = await listed();
    expect(others).toEqual([]);
    expect(noted).toMatchObject({ id: toContactFolder(ann), sender: ann, displayName: 'Ann' });
    expect(noted?.notes.map(({ ref }) => ref).toSorted()).toEqual(['MEMORY.md', 'memory/address.md']);
    expect(await listed(`?sender=${encodeURIComponent(ann)}`)).toEqual([noted]);
    expect(await listed(`?contact_id=${session}`)).toEqual([noted]);
    expect(await listed('?sender=nobody')).toEqual([]);
    expect(await listed(`?sender=nobody&contact_id=${session}`)).toEqual([]);
    expect(NotedContact.parse(await (await gateway.ask(tenant.read, path(ann))).json())).toEqual(noted);
    const note = await gateway.ask(tenant.read, path(ann, '/notes/memory/address.md'));
    expect([note.status, note.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(await note.text()).toContain('Lives in Oslo.');
  });

  it('come page by page', async () => {
    const senders = Array.from({ length: 5 }, (_, at) => `contact-${String(at)}`);
    for (const sender of senders) await scope.memory.forContact(sender).write({ text: 'noted' });
    const seen: string[] = [];
    let next: string | null = '/api/memory/contacts?limit=2';
    for (let page = 0; page < 5 && next !== null; page += 1) {
      const response = await gateway.ask(tenant.read, next);
      seen.push(
        ...z
          .array(NotedContact)
          .parse(await response.json())
          .map(({ id }) => id),
      );
      next = /^<(?<path>[^>]+)>; rel="next"$/u.exec(response.headers.get('link') ?? '')?.groups?.['path'] ?? null;
    }
    expect(next).toBeNull();
    expect(seen).toEqual(senders.map((sender) => toContactFolder(sender)).toSorted());
  });

  it('are forgotten one by one', async () => {
    await scope.memory.forContact(ann).write({ text: 'Likes green tea.' });
    await scope.memory.forContact(ann).write({ text: 'Lives in Oslo.', title: 'Address' });
    expect(await found(ann, 'Oslo')).toEqual(['memory/address.md']);
    expect(await readStatus(path(ann, '/notes/memory/address.md'), 'DELETE')).toBe(204);
    expect(await found(ann, 'Oslo')).toEqual([]);
    expect((await listed()).flatMap(({ notes }) => notes.map(({ ref }) => ref))).toEqual(['MEMORY.md']);
    expect(await readStatus(path(ann, '/notes/memory/address.md'), 'DELETE')).toBe(404);
  });

  it('are forgotten all at once, and are in no later prompt of the contact', async () => {
    const { contact_id: session } = await chat(ann);
    await scope.memory.forContact(ann).write({ text: 'Likes green tea.' });
    await scope.memory.forContact(ann).write({ text: 'Lives in Oslo.', title: 'Address' });
    await scope.memory.forContact('bob').write({ text: 'Likes coffee.' });
    expect(await readStatus(path(ann), 'DELETE')).toBe(204);
    expect((await listed()).map(({ id }) => id)).toEqual([toContactFolder('bob')]);
    expect(await found(ann, 'tea Oslo')).toEqual([]);
    const { files } = await scope.context.load({ agent: 'cs', sender: ann });
    expect(JSON.stringify(files)).not.toContain('green tea');
    expect(await readStatus(path(ann), 'DELETE')).toBe(404);
    expect(await readStatus(`/api/sessions/${session}`)).toBe(200);
  });

  it('go with the last conversation of the contact, and not before', async () => {
    const { contact_id: session } = await chat(ann);
    const other = await scope.sessions.load(session);
    if (other === undefined) throw new Error('the conversation is not there');
    const second = { ...other, id: deriveSessionId('cs', 'channel_a', ann), channel: 'channel_a' as const, revision: 1 };
    await scope.sessions.publish(second);
    await scope.memory.forContact(ann).write({ text: 'Likes green tea.' });
    expect(await readStatus(`/api/sessions/${session}`, 'DELETE')).toBe(204);
    expect(await listed()).toHaveLength(1);
    expect(await readStatus(`/api/sessions/${second.id}`, 'DELETE')).toBe(204);
    expect(await listed()).toEqual([]);
  });

  it('of a contact without a name go with the one conversation there is', async () => {
    const { contact_id: session } = await chat(undefined);
    await scope.memory.forContact(toNotesOwner({ sender: null, sessionId: session })).write({ text: 'Likes green tea.' });
    expect(await listed(`?contact_id=${session}`)).toHaveLength(1);
    expect(await readStatus(`/api/sessions/${session}`, 'DELETE')).toBe(204);
    expect(await listed()).toEqual([]);
  });

  it('belong to one contact: other paths, other tenants and what lies beside them stay closed', async () => {
    await scope.contacts.remember({ sender: ann, displayName: 'Ann' });
    await scope.memory.forContact(ann).write({ text: 'Likes green tea.' });
    for (const ref of ['contact.json', 'aliases/x.json', '..%2F..%2FMEMORY.md', 'memory/..%2F..%2F..%2Ftenant.json', 'memory'])
      expect(await readStatus(path(ann, `/notes/${ref}`))).toBeGreaterThanOrEqual(400);
    expect(await readStatus('/api/memory/contacts/not-an-id')).toBe(404);
    const other = await gateway.tenant();
    expect((await gateway.ask(other.admin, path(ann))).status).toBe(404);
    expect((await gateway.ask(tenant.cs, path(ann))).status).toBe(403);
    expect((await gateway.ask(tenant.read, path(ann), { method: 'DELETE' })).status).toBe(403);
    expect(await listed()).toHaveLength(1);
  });
});
