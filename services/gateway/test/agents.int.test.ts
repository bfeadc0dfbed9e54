import { beforeEach, describe, expect, it } from '@jest/globals';
import { AgentView, ChatReply, Problem, type AcceptedTurn } from '@concierge/contract';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let accepted: AcceptedTurn[];

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  accepted = [];
  gateway.script = async (run) => {
    accepted.push(run.turn);
    await sayItBack(run);
  };
  tenant = await gateway.tenant();
  const { files } = tenant.scope;
  await files.writeText('agents/books.md', '---\ndescription: Keeps the books\ntools: [read, write]\nmaxTurns: 4\n---\nKeep them.\n');
  await files.writeText('agents/guide.md', '---\ndescription: Shows around\npublic: true\nmodel: a/b\n---\nShow around.\n');
  await files.writeText('agents/typo.md', '---\ndescription: x\ntool: [read]\n---\n');
});

async function ask(key: string, agent: string, body: object): Promise<Response> {
  return await gateway.ask(key, `/api/agents/${agent}`, { method: 'POST', headers: { Accept: 'application/json' }, body });
}

async function problem(response: Response): Promise<Problem> {
  return Problem.parse(await response.json());
}

async function reply(response: Response): Promise<ChatReply> {
  expect(response.status).toBe(200);
  return ChatReply.parse(await response.json());
}

describe('POST /api/agents/{agent}', () => {
  it('gives a turn of a private agent the authority of the key', async () => {
    const first = await reply(await ask(tenant.admin, 'books', { message: 'hello' }));
    expect(first.reply).toBe('hello');
    expect(accepted).toMatchObject([{ agent: 'books', authority: 'admin', sender: null, channel: 'web', origin: 'api' }]);
    const again = await reply(await ask(tenant.admin, 'books', { message: 'again', contact_id: first.contact_id }));
    expect(again.contact_id).toBe(first.contact_id);
    expect((await problem(await ask(tenant.admin, 'guide', { message: 'x', contact_id: first.contact_id }))).status).toBe(404);
  });

  it('gives a turn of a public agent the authority of cs, for every caller', async () => {
    for (const key of [tenant.cs, tenant.admin])
      await reply(await ask(key, 'guide', { message: 'hello', sender: 'ann', channel: 'telegram' }));
    expect(accepted).toMatchObject([
      { agent: 'guide', authority: 'cs', sender: 'ann', channel: 'channel_c' },
      { agent: 'guide', authority: 'cs', sender: 'ann', channel: 'channel_c' },
    ]);
    expect(accepted[0]?.sessionId).toBe(accepted[1]?.sessionId);
  });

  it('is the same as the endpoints of the built-in agents', async () => {
    const cs = await reply(await ask(tenant.cs, 'cs', { message: 'hello', sender: 'ann' }));
    const there = await gateway.ask(tenant.cs, '/api/cs', {
      method: 'POST',
      headers: { Accept: 'application/json' },
      body: { message: 'hello', sender: 'ann' },
    });
    expect((await reply(there)).contact_id).toBe(cs.contact_id);
    await reply(await ask(tenant.admin, 'admin', { message: 'hello' }));
    expect(accepted.map(({ agent, authority }) => [agent, authority])).toEqual([
      ['cs', 'cs'],
      ['cs', 'cs'],
      ['admin', 'admin'],
    ]);
    const strict = await problem(await ask(tenant.admin, 'admin', { message: 'x', sender: 'ann', channel: 'web' }));
    expect(strict).toMatchObject({ status: 400, errors: [{ path: 'sender' }, { path: 'channel' }] });
  });

  it('refuses what is not public to a key without the scope admin', async () => {
    for (const agent of ['books', 'admin'])
      expect(await problem(await ask(tenant.cs, agent, { message: 'x' }))).toMatchObject({ status: 403, code: 'scope_required' });
    expect((await ask(tenant.read, 'guide', { message: 'x' })).status).toBe(403);
    expect(accepted).toEqual([]);
  });

  it('does not know names that are none, and shows the owner alone what is wrong with a file', async () => {
    for (const agent of ['nobody', 'Guide', '..%2FSOUL', 'x'.repeat(65)])
      expect(await problem(await ask(tenant.admin, agent, { message: 'x' }))).toMatchObject({ status: 404, code: 'not_found' });
    expect((await problem(await ask(tenant.admin, 'typo', { message: 'x' }))).detail).toContain('tool');
    const stranger = await problem(await ask(tenant.cs, 'typo', { message: 'x' }));
    expect(stranger.status).toBe(404);
    expect(stranger.detail).toBe((await problem(await ask(tenant.cs, 'nobody', { message: 'x' }))).detail);
  });

  it('is one turn for one Idempotency-Key, and another for another agent’s', async () => {
    const post = async (agent: string): Promise<Response> =>
      await gateway.ask(tenant.admin, `/api/agents/${agent}`, {
        method: 'POST',
        headers: { Accept: 'application/json', 'Idempotency-Key': 'k1' },
        body: { message: 'once' },
      });
    const first = await reply(await post('books'));
    const second = await post('books');
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    expect((await reply(second)).turnId).toBe(first.turnId);
    expect((await post('guide')).status).toBe(422);
  });
});

describe('GET /api/agents', () => {
  const list = async (key: string): Promise<AgentView[]> => z.array(AgentView).parse(await (await gateway.ask(key, '/api/agents')).json());

  it('lists the built-in agents first, then the tenant’s own, and what is wrong with files', async () => {
    const agents = await list(tenant.read);
    expect(agents.map(({ name, public: isPublic, builtIn }) => [name, isPublic, builtIn])).toEqual([
      ['admin', false, true],
      ['cs', true, true],
      ['books', false, false],
      ['guide', true, false],
      ['typo', false, false],
    ]);
    expect(agents[2]).toMatchObject({ description: 'Keeps the books', tools: ['read', 'write'], model: null, maxTurns: 4, problem: null });
    expect(agents[3]?.tools).toEqual(agents[1]?.tools);
    expect(agents[3]?.model).toBe('a/b');
    expect(agents[4]).toMatchObject({
      tools: [],
      problem: expect.stringMatching(/^agents\/typo\.md: .*tool/u),
      problems: [{ code: 'field_unknown', params: { field: 'front matter', keys: 'tool' } }],
    });
    expect((await gateway.ask(tenant.cs, '/api/agents')).status).toBe(403);
  });

  it('shows what tenant.json makes of them', async () => {
    await tenant.scope.updateSettings({ agents: { books: { tools: ['write', 'bash'], maxTurns: 9, model: 'c/d' }, guide: { tools: [] } } });
    const agents = await list(tenant.admin);
    expect(agents.find(({ name }) => name === 'books')).toMatchObject({ tools: ['write'], maxTurns: 4, model: 'c/d' });
    expect(agents.find(({ name }) => name === 'guide')?.tools).toEqual([]);
  });
});

describe('GET /api/sessions?agent=', () => {
  it('takes every agent there is, and one that is gone as long as it has sessions', async () => {
    const { contact_id: id } = await reply(await ask(tenant.admin, 'books', { message: 'hello' }));
    const ids = async (agent: string): Promise<unknown> => await (await gateway.ask(tenant.read, `/api/sessions?agent=${agent}`)).json();
    expect(await ids('books')).toMatchObject([{ id, agent: 'books' }]);
    expect(await ids('guide')).toEqual([]);
    await tenant.scope.files.remove('agents/books.md');
    expect(await ids('books')).toMatchObject([{ id }]);
    expect(await ids('nobody')).toMatchObject({ status: 400, errors: [{ path: 'agent' }] });
  });
});

describe('what is wrong with a file', () => {
  const head = (fields: string): string => `---\n${fields}\n---\nText.`;

  it.each([
    ['agents/admin.md', head('description: x'), { code: 'agent_name_taken', params: { name: 'admin' } }],
    ['agents/No.md', head('description: x'), { code: 'agent_file_name', params: {} }],
    ['agents/a.md', 'Text.', { code: 'field_type', params: { field: 'description', expected: 'string' } }],
    ['agents/a.md', head('description: ""'), { code: 'field_too_small', params: { field: 'description', minimum: '1' } }],
    ['agents/a.md', head('description: x\nmaxTurns: 100000'), { code: 'field_too_big', params: { field: 'maxTurns' } }],
    ['agents/a.md', head('description: x\nmodell: a/b'), { code: 'field_unknown', params: { field: 'front matter', keys: 'modell' } }],
    ['agents/a.md', '--- x\n---', { code: 'front_matter_opening', params: {} }],
    ['agents/a.md', '---\ndescription: x', { code: 'front_matter_unclosed', params: {} }],
    ['agents/a.md', head(`description: ${'x'.repeat(70_000)}`), { code: 'front_matter_too_long', params: {} }],
    ['agents/a.md', head('description: [x'), { code: 'front_matter_yaml', params: { reason: expect.any(String) } }],
    ['skills/No/SKILL.md', head('name: No'), { code: 'skill_folder_name', params: {} }],
    ['skills/a/SKILL.md', head('name: b\ndescription: x'), { code: 'skill_name_differs', params: { name: 'b', folder: 'a' } }],
    [
      'skills/a/SKILL.md',
      head('name: A b\ndescription: x'),
      { code: 'field_format', params: { field: 'name', reason: expect.stringContaining('lower-case') } },
    ],
  ])('of %s is named by a code: %#', async (path, text, { code, params }) => {
    const answer = await gateway.ask(tenant.admin, `/api/file-check/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'text/plain' },
      body: text,
    });
    expect(await answer.json()).toMatchObject({
      problem: expect.any(String),
      problems: expect.arrayContaining([{ message: expect.any(String), code, params: expect.objectContaining(params) }]),
    });
  });
});
