import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { ContractSystem, promise, type Tenant } from './fixture.ts';

let contract: ContractSystem;
let tenant: Tenant;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start());
  tenant = await contract.tenant();
});

const Message = z.object({ role: z.string(), content: z.unknown() });

function readPrompt(marker: string): { system: string; user: string } {
  const request = contract.model.requests.findLast(({ userText }) => userText.includes(marker));
  const messages = z.array(Message).parse(request?.body.messages);
  return { system: JSON.stringify(messages[0]?.content), user: request?.userText ?? '' };
}

async function put(path: string, text: string): Promise<void> {
  const answer = await tenant
    .as('admin')
    .request(`/api/files/${path}`, { method: 'PUT', rawBody: text, headers: { 'content-type': 'text/markdown' } });
  expect(answer.status).toBeLessThan(300);
}

const contextFiles = ['IDENTITY.md', 'SOUL.md', 'USER.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md', 'BOOTSTRAP.md', 'BOOTSTRAP-shop.md'];

describe('the system prompt', () => {
  promise(
    ['SI/what-the-service-does/7'],
    'is rebuilt from the context files on every turn, and holds the skills’ names and descriptions',
    async () => {
      for (const round of ['first', 'second']) {
        for (const path of contextFiles) await put(path, `${path} says ${round}`);
        await put('skills/refund/SKILL.md', `---\nname: refund\ndescription: Refunds ${round}.\n---\nbody-of-the-skill`);
        await tenant.as('admin').request('/api/skills/reindex', { method: 'POST' });
        await tenant.as('admin').ask('admin', { message: `prompt-${round}` });
        const { system } = readPrompt(`prompt-${round}`);
        for (const path of contextFiles) expect(system).toContain(`${path} says ${round}`);
        expect(system).toContain('refund');
        expect(system).toContain(`Refunds ${round}.`);
        expect(system).not.toContain('body-of-the-skill');
      }
    },
  );

  promise(['SI/what-the-service-does/12', 'SI/what-the-service-does/13'], 'gives the body of a skill only through load_skill', async () => {
    await put('skills/greet/SKILL.md', '---\nname: greet\ndescription: Greets.\n---\nbow-three-times');
    await tenant.as('admin').request('/api/skills/reindex', { method: 'POST' });
    const answer = await tenant.as('cs').ask('cs', { message: 'load-it [[tools:load_skill {"name":"greet"}]] [[say:bowed]]' });
    expect(answer.json()).toMatchObject({
      reply: 'bowed',
      toolCalls: [{ name: 'load_skill', output: expect.stringContaining('bow-three-times'), isError: false }],
    });
    expect(readPrompt('load-it').system).not.toContain('bow-three-times');
  });

  promise(
    ['SI/what-the-service-does/8'],
    'leaves HEARTBEAT and the time to the user’s message, which is stored as it was sent',
    async () => {
      await put('HEARTBEAT.md', 'check the oven');
      const first = z.object({ contact_id: z.string() }).parse((await tenant.as('admin').ask('admin', { message: 'heart-one' })).json());
      const { system, user } = readPrompt('heart-one');
      expect(user).toContain('check the oven');
      expect(user).toMatch(/20\d\d-\d\d-\d\d/u);
      expect(user.endsWith('heart-one')).toBe(true);
      expect(system).not.toContain('check the oven');
      await put('HEARTBEAT.md', 'something else');
      await tenant.as('admin').ask('admin', { message: 'heart-two', contact_id: first.contact_id });
      const again = JSON.stringify(contract.model.requests.at(-1)?.body.messages);
      expect(again).toContain(JSON.stringify(user).slice(1, -1));
      const session = (await tenant.as('admin').get(`/api/sessions/${first.contact_id}`)).text;
      expect(session).not.toContain('check the oven');
    },
  );

  promise(
    ['SI/what-the-service-does/3', 'SI/post-api-cs/4'],
    'of cs holds the contact’s own memory and nothing of the owner’s or of other contacts',
    async () => {
      await put('MEMORY.md', 'owner-only-memory');
      await put('USER.md', 'owner-only-user');
      await tenant.as('cs').ask('cs', { message: '[[tools:memory_write {"text":"likes-red-shoes"}]] [[say:noted]]', sender: 'ann' });
      await tenant.as('cs').ask('cs', { message: 'ann-again', sender: 'ann' });
      await tenant.as('cs').ask('cs', { message: 'bob-here', sender: 'bob' });
      const ann = readPrompt('ann-again').system;
      expect(ann).not.toContain('owner-only');
      const memory = await tenant
        .as('cs')
        .ask('cs', { message: 'ann-recall [[tools:memory_get {"ref":"MEMORY.md"}]] [[say:x]]', sender: 'ann' });
      expect(`${ann}${memory.text}`).toContain('likes-red-shoes');
      const bob = await tenant
        .as('cs')
        .ask('cs', { message: 'bob-recall [[tools:memory_get {"ref":"MEMORY.md"}]] [[say:x]]', sender: 'bob' });
      expect(`${readPrompt('bob-here').system}${bob.text}`).not.toContain('likes-red-shoes');
    },
  );
});

describe('every channel', () => {
  promise(
    ['SI/what-the-service-does/5', 'SI/what-the-service-does/6'],
    'takes the same path: the same input through JSON and SSE gives equal turns',
    async () => {
      const message = '[[tools:list_files {}]] [[say:same]]';
      const json = z.object({ turnId: z.string() }).parse((await tenant.as('admin').ask('admin', { message })).json());
      const sse = (await tenant.as('admin').chat('admin', { message })).events();
      const replayed = (await tenant.as('admin').get(`/api/turns/${json.turnId}/events`)).events();
      const shape = (events: typeof sse): unknown[] =>
        events.map(({ type, data }) => {
          const { id: _id, contact_id: _contact, turnId: _turn, durationMs: _duration, inputTokens: _input, ...rest } = data;
          return [type, rest];
        });
      expect(shape(replayed)).toEqual(shape(sse));
    },
  );

  promise(['SI/what-the-service-does/10'], 'reaches its own tenant only: the agent cannot read outside its directory', async () => {
    await writeFile(join(contract.system.dataDir, 'outside.txt'), 'canary-outside');
    for (const path of ['../../outside.txt', '/etc/hostname', 'sessions', 'tenant.json', 'keys']) {
      const answer = await tenant.as('admin').ask('admin', { message: `[[tools:read ${JSON.stringify({ path })}]] [[say:x]]` });
      expect(answer.json()).toMatchObject({ toolCalls: [{ name: 'read', isError: true }] });
      expect(answer.text).not.toContain('canary-outside');
    }
  });
});
