import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

describe('a model that a setting names', () => {
  const patch = async (body: object): Promise<Response> => gateway.ask(tenant.admin, '/api/tenant', { method: 'PATCH', body });

  it('is refused where no provider has it, for the tenant and for an agent', async () => {
    expect((await patch({ model: 'openia/gpt-5-mini' })).status).toBe(200);
    const openai = { baseUrl: 'https://api.openai.example/v1', apiKeyEnv: 'NOT_SET_HERE' };
    await writeFile(join(gateway.dataDir, 'providers.json'), JSON.stringify({ default: 'openai/gpt-5-mini', providers: { openai } }));
    const refused = await patch({ model: 'openia/gpt-5-mini', agents: { cs: { model: 'no/such' } } });
    expect(refused.status).toBe(400);
    const message = (ref: string): string => `${ref} is a model of no provider here; there are: openai`;
    expect(await refused.json()).toMatchObject({
      errors: [
        { path: 'model', message: message('openia/gpt-5-mini') },
        { path: 'agents.cs.model', message: message('no/such') },
      ],
    });
    expect((await patch({ model: 'openai/gpt-5-mini', agents: { cs: { model: 'openai/newer' } } })).status).toBe(200);
    expect((await patch({ model: null })).status).toBe(200);
  });
});

describe('a file that is not written yet', () => {
  it('says what would be wrong with it in the words of writing it, and stores nothing', async () => {
    const owner = await gateway.tenant();
    const send = async (method: string, where: string, text: string): Promise<unknown> => {
      const headers = { 'Content-Type': 'text/markdown' };
      const answer = await gateway.ask(owner.admin, where, { method, body: text, headers });
      return answer.status === 204 ? { problem: null } : answer.json();
    };
    const cases = [
      ['skills/refunds/SKILL.md', '---\nname: refund\n---\nPay.'],
      ['skills/refunds/SKILL.md', '---\nname: refunds\ndescription: Pays back.\n---\nPay.'],
      ['agents/books.md', '---\ndescripton: Books\n---\nBuy.'],
      ['agents/books.md', '---\ndescription: [\n---\nBuy.'],
      ['agents/cs.md', '---\ndescription: Books\n---\nBuy.'],
      ['agents/books.md', '---\ndescription: Books\n---\nBuy.'],
      ['SOUL.md', '---\nanything: [\n---'],
    ] as const;
    const [said, stored]: unknown[][] = [[], []];
    for (const [path, text] of cases) said?.push(await send('POST', `/api/file-check/${path}`, text));
    expect(await (await gateway.ask(owner.admin, '/api/files/agents/books.md')).json()).toMatchObject({ code: 'not_found' });
    for (const [path, text] of cases) stored?.push(await send('PUT', `/api/files/${path}`, text));
    expect(said).toEqual(stored);
    expect(said?.map((answer) => JSON.stringify(answer).includes('"problem":null'))).toEqual([
      false,
      true,
      false,
      false,
      false,
      true,
      true,
    ]);
  });
});

describe('a model that is too small for the tools of an agent', () => {
  const small = 'p/small has a window of 8000: conversations are shortened all the time.';

  it('is taken, and the answer warns of it: of the settings and of an agent’s file', async () => {
    const models = { small: { contextWindow: 8000 }, large: { contextWindow: 128_000 } };
    const p = { baseUrl: 'https://models.example/v1', apiKeyEnv: 'NOT_SET_HERE', models };
    await writeFile(join(gateway.dataDir, 'providers.json'), JSON.stringify({ default: 'p/large', providers: { p } }));
    const owner = await gateway.tenant();
    const patch = async (body: object): Promise<Response> => gateway.ask(owner.admin, '/api/tenant', { method: 'PATCH', body });
    const put = async (text: string): Promise<Response> =>
      gateway.ask(owner.admin, '/api/files/agents/books.md', {
        method: 'PUT',
        body: text,
        headers: { 'Content-Type': 'text/markdown' },
      });

    expect(await (await patch({ name: 'Shop' })).json()).not.toHaveProperty('warnings');
    const changed = await patch({ model: 'p/small' });
    expect([changed.status, await changed.json()]).toEqual([
      200,
      expect.objectContaining({
        model: 'p/small',
        warnings: [expect.stringMatching(/^The 28 tools of the agent admin take about \d+ tokens, and p\/small has a window of 8000:/u)],
      }),
    ]);
    const agent = (rest: string): string => `---\ndescription: Keeps the books\n${rest}---\nBe exact.\n`;
    const first = await put(agent(''));
    expect([first.status, await first.json()]).toEqual([201, { problem: null, warnings: [expect.stringContaining(small)] }]);
    expect((await put(agent('tools: [read, write]\n'))).status).toBe(204);
    const again = await put(agent('model: p/small\n'));
    expect([again.status, await again.json()]).toEqual([200, { problem: null, warnings: [expect.stringContaining(small)] }]);
    expect((await put(agent('model: p/large\n'))).status).toBe(204);
  });
});

describe('a file that defines something', () => {
  const put = async (path: string, body: string): Promise<Response> =>
    gateway.ask(tenant.admin, `/api/files/${path}`, { method: 'PUT', body, headers: { 'Content-Type': 'text/markdown' } });

  it.each([
    [
      'agents/helper.md',
      '---\ndescription: Helps\n---\n',
      '---\ndescription: Helps\ntool: [read]\n---\n',
      {
        problem: 'front matter: Unrecognized key: "tool"',
        problems: [{ message: 'Unrecognized key: "tool"', code: 'field_unknown', params: { field: 'front matter', keys: 'tool' } }],
      },
    ],
    [
      'skills/refund/SKILL.md',
      '---\nname: refund\ndescription: Refunds\n---\n',
      '---\nname: other\ndescription: Refunds\n---\n',
      {
        problem: 'front matter: the name is other, the folder is refund',
        problems: [
          {
            message: 'front matter: the name is other, the folder is refund',
            code: 'skill_name_differs',
            params: { name: 'other', folder: 'refund' },
          },
        ],
      },
    ],
  ] as const)('reports what is wrong with it when it is written: %s', async (...given) => {
    const [path, good, bad, wrong] = given;
    const first = await put(path, bad);
    expect([first.status, await first.json()]).toEqual([201, wrong]);
    expect((await put(path, good)).status).toBe(204);
    const worse = await put(path, bad);
    expect([worse.status, await worse.json()]).toEqual([200, wrong]);
  });

  it('warns of no other', async () => {
    const memory = await put('templates/mail.md', '---\nno: front matter\n');
    expect([memory.status, await memory.json()]).toEqual([201, { problem: null }]);
  });
});

describe('a schedule that cannot be read', () => {
  it.each([
    ['a cron without its zone', { cron: '0 9 * * *' }],
    ['two timings', { every: '15m', at: '2030-01-01T00:00:00Z' }],
  ])('is answered with a sentence about its field: %s', async (_name, schedule) => {
    const body = { name: 'x', message: 'x', schedule };
    const refused = await gateway.ask(tenant.admin, '/api/cron', { method: 'POST', body });
    expect(await refused.json()).toMatchObject({
      status: 400,
      errors: [{ path: 'schedule', message: expect.stringMatching(/^must be one of \{cron, timezone\}/u) }],
    });
  });
});
