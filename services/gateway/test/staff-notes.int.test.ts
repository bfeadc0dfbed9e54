import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatReply, limits, SavedAnswer, SessionListItem, SessionStaff, StaffNote } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { sayItBack } from './scripted-turns.ts';
import { atRest, TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let session: string;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
  session = await write('ann');
});

async function write(sender: string): Promise<string> {
  const headers = { Accept: 'application/json' };
  const answer = await gateway.ask(tenant.admin, '/api/cs', { method: 'POST', headers, body: { message: 'hello', sender } });
  const { contact_id: id } = ChatReply.parse(await answer.json());
  await eventually(async () => (await tenant.scope.index.listSessions({ limit: 50 })).items.some((item) => item.id === id));
  await atRest(tenant);
  return id;
}

async function get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.infer<Schema>> {
  const answer = await gateway.ask(tenant.read, path);
  expect(answer.status).toBe(200);
  return schema.parse(await answer.json());
}

async function change(method: string, path: string, body?: unknown): Promise<Response> {
  return gateway.ask(tenant.admin, path, { method, ...(body !== undefined && { body }) });
}

const staff = async (id = session): Promise<SessionStaff> => get(`/api/sessions/${id}/staff`, SessionStaff);
const path = (rest: string): string => `/api/sessions/${session}${rest}`;

describe('notes of staff', () => {
  it('are kept with the conversation, for staff alone', async () => {
    const added = await change('POST', path('/notes'), { text: ' Refund is fine: CANARY ', author: 'Anna' });
    expect(added.status).toBe(201);
    const note = StaffNote.parse(await added.json());
    expect(note).toMatchObject({ text: 'Refund is fine: CANARY', author: 'Anna', by: { kind: 'key' } });
    await change('POST', path('/notes'), { text: 'second' });
    expect(await staff()).toMatchObject({ assignee: null, notes: [note, { text: 'second', author: null }] });

    // Neither the conversation nor what the next turn is given has it.
    await write('ann');
    for (const other of [path(''), path('?limit=5'), '/api/sessions', '/api/turns'])
      expect(await (await gateway.ask(tenant.read, other)).text()).not.toContain('CANARY');
    expect(JSON.stringify(await tenant.scope.sessions.load(session))).not.toContain('CANARY');
    const search = { text: 'CANARY', limit: 10, signal: AbortSignal.timeout(60_000) };
    expect((await tenant.scope.memorySearch.search({ access: 'owner' }, search)).hits).toEqual([]);
    await expect(tenant.scope.files.readText(`handoffs/notes/${session}/${note.id}.json`)).rejects.toMatchObject({ code: 'not_found' });

    expect((await change('DELETE', path(`/notes/${note.id}`))).status).toBe(204);
    expect((await change('DELETE', path(`/notes/${note.id}`))).status).toBe(404);
    expect((await staff()).notes.map(({ text }) => text)).toEqual(['second']);
  });

  it('are refused for a conversation that is not there, without words, and beyond their number', async () => {
    const nowhere = `/api/sessions/${'f'.repeat(32)}`;
    expect((await gateway.ask(tenant.read, `${nowhere}/staff`)).status).toBe(404);
    expect((await change('POST', `${nowhere}/notes`, { text: 'x' })).status).toBe(404);
    expect((await change('POST', path('/notes'), { text: '  ' })).status).toBe(400);
    const folder = join(tenant.scope.root, 'handoffs/notes', session);
    await mkdir(folder, { recursive: true });
    for (let count = 0; count < limits.staffNotesPerSession; count += 1)
      await writeFile(join(folder, `n_${count.toString(16).padStart(32, '0')}.json`), '{}');
    expect((await change('POST', path('/notes'), { text: 'one more' })).status).toBe(409);
  });

  it('and the assignee go with the conversation, and are not those of a later one of the same contact', async () => {
    await change('POST', path('/notes'), { text: 'gone soon' });
    await change('PUT', path('/assignee'), { name: 'Anna' });
    // As a version without staff notes removes it: the files stay.
    await tenant.scope.sessions.remove(session);
    await write('ann');
    expect(await staff()).toEqual({ assignee: null, notes: [] });

    await change('POST', path('/notes'), { text: 'gone at once' });
    expect((await change('DELETE', path(''))).status).toBe(204);
    const left = async (): Promise<string[]> => readdir(join(tenant.scope.root, 'handoffs'), { recursive: true });
    expect(await left()).not.toContain(`notes/${session}`);

    await tenant.scope.sessions.remove(await write('bob'));
    const orphan = join(tenant.scope.root, 'handoffs/assignees', `${'e'.repeat(32)}.json`);
    await writeFile(orphan, '{}');
    await tenant.scope.sweep();
    expect(await left()).not.toContain(`assignees/${'e'.repeat(32)}.json`);
  });
});

describe('an assignee', () => {
  it('is set, shown in the list, filtered by, and taken away', async () => {
    const other = await write('bob');
    expect(await (await change('PUT', path('/assignee'), { name: 'Anna' })).json()).toMatchObject({ assignee: { name: 'Anna' } });
    await change('PUT', `/api/sessions/${other}/assignee`, { name: 'Zoë' });
    const list = async (query: string): Promise<unknown[]> =>
      (await get(`/api/sessions?${query}`, z.array(SessionListItem))).map(({ id, assignee }) => [id, assignee]);
    expect(await list('sender=ann')).toEqual([[session, 'Anna']]);
    expect(await list('assignee=Anna')).toEqual([[session, 'Anna']]);
    expect(await list('assignee=Zo%C3%AB&state=agent')).toEqual([[other, 'Zoë']]);
    expect(await list('assignee=Anna&state=waiting')).toEqual([]);
    await change('POST', path('/handoff'), { notify: false });
    expect(await list('assignee=Anna&state=waiting')).toEqual([[session, 'Anna']]);
    expect(await list('assignee=Anna&state=agent')).toEqual([]);
    await change('PUT', path('/assignee'), { name: null });
    expect(await staff()).toEqual({ assignee: null, notes: [] });
    expect(await list('assignee=Anna')).toEqual([]);
  });
});

describe('saved answers', () => {
  it('are the files in answers/, by name; what is too long for a message is none', async () => {
    expect(await get('/api/answers', z.array(SavedAnswer))).toEqual([]);
    const { files } = tenant.scope;
    await files.writeText('answers/refund.md', '\nYour refund is on its way.\n');
    await files.writeText('answers/hours.md', 'We open at nine.');
    await files.writeText('answers/long.md', 'x'.repeat(limits.messageMaxCharacters + 1));
    await files.writeText('answers/empty.md', '  ');
    await files.writeText('answers/other.txt', 'no answer');
    expect(await get('/api/answers', z.array(SavedAnswer))).toEqual([
      { name: 'hours', text: 'We open at nine.' },
      { name: 'refund', text: 'Your refund is on its way.' },
    ]);
  });
});
