import { describe, expect, it } from '@jest/globals';
import { SessionLabelView, SessionListItem, SessionPage, SessionView, TurnView } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { atRest, TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

const Chat = z.object({ contact_id: z.string(), turnId: z.string() });
const Used = z.object({ total: z.object({ turns: z.number() }) });
const json = { Accept: 'application/json' };

/** Turns of one conversation, one after the other, each answered with its own words. */
async function converse(messages: readonly string[], body: object = {}): Promise<{ id: string; turnIds: string[] }> {
  const turnIds: string[] = [];
  let id: string | undefined;
  for (const message of messages) {
    const path = 'sender' in body ? '/api/cs' : '/api/admin';
    const asked = { message, ...body, ...(id !== undefined && !('sender' in body) && { contact_id: id }) };
    const chatted = Chat.parse(await (await gateway.ask(tenant.admin, path, { method: 'POST', headers: json, body: asked })).json());
    id = chatted.contact_id;
    turnIds.push(chatted.turnId);
  }
  const listed = id ?? '';
  await eventually(async () => (await list()).some((item) => item.id === listed));
  return { id: listed, turnIds };
}

const list = async (query = ''): Promise<SessionListItem[]> =>
  z.array(SessionListItem).parse(await (await gateway.ask(tenant.read, `/api/sessions${query}`)).json());

const readTexts = ({ messages }: Pick<SessionView, 'messages'>): string[] =>
  messages.map((message) => (message.role === 'tool' ? '' : `${message.role}: ${message.text}`));

const view = async (id: string): Promise<SessionView> =>
  SessionView.parse(await (await gateway.ask(tenant.read, `/api/sessions/${id}`)).json());

const fork = async (id: string, body: object): Promise<Response> =>
  gateway.ask(tenant.admin, `/api/sessions/${id}/fork`, { method: 'POST', body });

const label = async (id: string, body: object): Promise<Response> =>
  gateway.ask(tenant.admin, `/api/sessions/${id}`, { method: 'PATCH', body });

describe('a fork', () => {
  it('begins another conversation with the messages up to a turn, and leaves the first as it is', async () => {
    const { id, turnIds } = await converse(['one', 'two', 'three']);
    const before = await view(id);
    const answer = await fork(id, { turnId: turnIds[1] });
    expect(answer.status).toBe(201);
    const forked = SessionView.parse(await answer.json());
    expect(forked).toMatchObject({ agent: 'admin', title: 'one', messageCount: 4, forkedFrom: { id, turnId: turnIds[1] } });
    expect(readTexts(forked)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two']);
    expect(forked.id).not.toBe(id);

    const without = SessionView.parse(await (await fork(id, { turnId: turnIds[1], includesTurn: false })).json());
    expect(readTexts(without)).toEqual(['user: one', 'assistant: one']);

    const body = { message: 'another', contact_id: forked.id };
    await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers: json, body });
    expect(readTexts(await view(forked.id)).slice(-2)).toEqual(['user: another', 'assistant: another']);
    expect(await view(forked.id)).toMatchObject({ forkedFrom: { id } });
    expect(await view(id)).toEqual(before);
    const ids = (await list()).map((item) => item.id);
    expect(ids).toEqual(expect.arrayContaining([id, forked.id, without.id]));
  });

  it('counts what its first turns used once', async () => {
    const { id, turnIds } = await converse(['count me']);
    const used = async (): Promise<number> => Used.parse(await (await gateway.ask(tenant.read, '/api/usage')).json()).total.turns;
    const before = await eventually(async () => (await used()) || undefined);
    expect((await fork(id, { turnId: turnIds[0] })).status).toBe(201);
    await tenant.scope.reindex();
    expect(await used()).toBe(before);
    const turns = z.array(TurnView).parse(await (await gateway.ask(tenant.read, `/api/turns?limit=100`)).json());
    expect(turns.filter((turn) => turn.id === turnIds[0]).map((turn) => turn.contact_id)).toEqual([id]);
  });

  it('is refused of a contact’s conversation, before a first turn, of what is not there, and to keys that may only read', async () => {
    const { id, turnIds } = await converse(['mine']);
    const contact = await converse(['theirs'], { sender: '4917', channel: 'whatsapp' });
    expect((await fork(contact.id, { turnId: contact.turnIds[0] })).status).toBe(409);
    expect((await fork(id, { turnId: turnIds[0], includesTurn: false })).status).toBe(409);
    expect((await fork(id, { turnId: 'none' })).status).toBe(404);
    expect((await fork('0'.repeat(32), { turnId: 'none' })).status).toBe(404);
    expect((await gateway.ask(tenant.read, `/api/sessions/${id}/fork`, { method: 'POST', body: { turnId: turnIds[0] } })).status).toBe(403);
  });
});

describe('a name and a pin', () => {
  it('are shown in lists, in the conversation and by a search, also while a turn runs, and go with the conversation', async () => {
    const { id } = await converse(['an own first line']);
    const other = await converse(['something else']);
    const answer = await label(id, { title: 'Quarterly Figures', pinned: true });
    expect(SessionLabelView.parse(await answer.json())).toEqual({ id, title: 'Quarterly Figures', pinned: true });
    expect(await list('?q=quarterly')).toMatchObject([{ id, title: 'Quarterly Figures', pinned: true }]);
    expect((await list('?q=own%20first')).map((item) => item.id)).toEqual([id]);
    expect((await list('?pinned=true')).map((item) => item.id)).toEqual([id]);
    const others = (await list('?pinned=false')).map((item) => item.id);
    expect(others).toContain(other.id);
    expect(others).not.toContain(id);
    expect((await view(id)).title).toBe('Quarterly Figures');

    // The turn that ends now replaces the session's file.
    await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', headers: json, body: { message: 'more', contact_id: id } });
    const page = SessionPage.parse(await (await gateway.ask(tenant.read, `/api/sessions/${id}?limit=1`)).json());
    expect(page.title).toBe('Quarterly Figures');

    expect(SessionLabelView.parse(await (await label(id, { title: null })).json())).toEqual({
      id,
      title: 'an own first line',
      pinned: true,
    });
    await atRest(tenant);
    expect((await gateway.ask(tenant.admin, `/api/sessions/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect(await list('?pinned=true')).toEqual([]);
    expect(await tenant.scope.labels.find(id)).toBeUndefined();
    expect((await label(id, { pinned: true })).status).toBe(404);
  });
});
