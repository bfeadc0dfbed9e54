import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatReply, ContactDetails, ContactListItem, SessionListItem } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { toContactFolder, type TenantScope } from '@concierge/tenant';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

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

/** A message, once the lists have its conversation. @returns the id of the conversation */
async function write(body: { readonly sender?: string; readonly channel?: string }): Promise<string> {
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, '/api/cs', { method: 'POST', headers, body: { message: 'hello', ...body } });
  const { contact_id: id } = ChatReply.parse(await answer.json());
  await eventually(async () => (await scope.index.listSessions({ limit: 50 })).items.some((item) => item.id === id));
  return id;
}

async function get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.infer<Schema>> {
  const answer = await gateway.ask(tenant.read, path);
  expect(answer.status).toBe(200);
  return schema.parse(await answer.json());
}

const list = async (query = ''): Promise<ContactListItem[]> => get(`/api/contacts${query}`, z.array(ContactListItem));

describe('contacts', () => {
  it('are listed, the last one first, each once, and found by name, id and further ids', async () => {
    await write({ sender: 'ann@example.com', channel: 'web' });
    await write({ sender: '4915112', channel: 'whatsapp' });
    await write({ sender: 'ann@example.com', channel: 'telegram' });
    await write({});
    await scope.contacts.remember({ sender: '4915112', displayName: 'Zoë Lee' });
    await scope.contacts.addAlias({ channel: 'channel_a', alias: 'DE.abc', sender: '4915112' });
    expect(await list()).toMatchObject([
      { id: toContactFolder('ann@example.com'), sender: 'ann@example.com', displayName: null, conversations: 2 },
      { sender: '4915112', displayName: 'Zoë Lee', conversations: 1 },
    ]);
    for (const query of ['?q=ZO%C3%8B', '?q=5112', '?q=DE.abc'])
      expect((await list(query)).map(({ sender }) => sender)).toEqual(['4915112']);
    expect(await list('?q=%25')).toEqual([]);

    const first = await gateway.ask(tenant.read, '/api/contacts?limit=1');
    const next = /<([^>]*)>; rel="next"/u.exec(first.headers.get('link') ?? '')?.[1] ?? '';
    expect(await get(next, z.array(ContactListItem))).toMatchObject([{ sender: '4915112' }]);
  });

  it('are found by their names without a look into their files', async () => {
    const id = await write({ sender: '4915112', channel: 'whatsapp' });
    await scope.contacts.remember({ sender: '4915112', displayName: 'Zoë Lee' });
    await writeFile(join(scope.root, 'contacts', toContactFolder('4915112'), 'contact.json'), 'no record');
    expect((await list('?q=zo%C3%AB')).map(({ sender }) => sender)).toEqual(['4915112']);
    expect((await get('/api/sessions?q=ZO%C3%8B', z.array(SessionListItem))).map((session) => session.id)).toEqual([id]);
    expect(await get('/api/sessions?q=zora', z.array(SessionListItem))).toEqual([]);
  });

  it('have their ids, conversations with the reply window, and notes', async () => {
    const sender = '4915112';
    const onWeb = await write({ sender, channel: 'web' });
    const onWhatsApp = await write({ sender, channel: 'whatsapp' });
    await scope.contacts.addAlias({ channel: 'channel_a', alias: 'DE.abc', sender });
    await scope.contacts.noteReach('channel_a', sender, 'unreachable');
    await scope.memory.forContact(sender).write({ text: 'Likes green tea.' });
    const id = toContactFolder(sender);
    const contact = await get(`/api/contacts/${id}`, ContactDetails);
    expect(contact).toMatchObject({
      id,
      sender,
      displayName: null,
      identities: [{ channel: 'channel_a', id: 'DE.abc' }],
      conversations: [
        // What an API wrote in the contact's place opens no window.
        { sessionId: onWhatsApp, channel: 'channel_a', window: { state: 'closed', until: null }, unreachableSince: expect.any(String) },
        { sessionId: onWeb, channel: 'web', window: { state: 'none', until: null }, unreachableSince: null },
      ],
      notes: [{ ref: 'MEMORY.md' }],
    });
    expect(await get(`/api/sessions/${onWeb}/contact`, ContactDetails)).toEqual(contact);
    await scope.contacts.remember({ sender, displayName: 'Ann' });
    expect(await get(`/api/contacts/${id}`, ContactDetails)).toMatchObject({ displayName: 'Ann' });
  });

  it('without an id are found by their conversation, and the owner is none', async () => {
    const anonymous = await write({});
    expect(await get(`/api/sessions/${anonymous}/contact`, ContactDetails)).toMatchObject({
      sender: null,
      identities: [],
      conversations: [{ sessionId: anonymous }],
      notes: [],
    });
    const headers = { Accept: 'application/json' };
    const own = await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers, body: { message: 'mine' } });
    const { contact_id: ownId } = ChatReply.parse(await own.json());
    await eventually(async () => (await scope.index.listSessions({ limit: 5 })).items.length === 2);
    expect((await get('/api/sessions?contacts=true', z.array(SessionListItem))).map(({ id }) => id)).toEqual([anonymous]);
    for (const path of [`/api/sessions/${ownId}/contact`, `/api/sessions/${'f'.repeat(32)}/contact`, `/api/contacts/${'f'.repeat(32)}`])
      expect((await gateway.ask(tenant.read, path)).status).toBe(404);
  });
});
