import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allTools, ToolBox, toolScope, ToolSet, type ToolOutcome, type TurnStatus } from '@concierge/agent';
import type { AcceptedTurn, Session } from '@concierge/contract';
import { createLog } from '@concierge/runtime';
import { openIndex, Tenants, type IndexStore, type TenantScope } from '@concierge/tenant';
import { unusedCapabilities } from '../src/fixtures/tool-fixture.ts';
import { temporaryDirectory } from '@concierge/testing';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const log = createLog({ service: 'test', level: 'silent' });
const signal = new AbortController().signal;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let index: IndexStore;
let scope: TenantScope;

const status = (): TurnStatus => ({
  agent: 'admin',
  channel: 'web',
  sessionId: '0'.repeat(32),
  time: 'now',
  model: 'test/model',
  contextTokens: 500,
  contextWindow: 1000,
  messages: 3,
  compacted: false,
  turn: { modelCalls: 1, maxTurns: 20, inputTokens: 10, outputTokens: 2 },
});

interface Box {
  readonly failures: unknown[];
  readonly call: (name: string, input?: Record<string, unknown>) => Promise<ToolOutcome>;
}

function box(turn: Partial<AcceptedTurn> = {}): Box {
  const whole = {
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    origin: 'api',
    sender: null,
    sessionId: '0'.repeat(32),
    turnId: 't1',
    ...turn,
  } as const;
  const context = toolScope({
    scope,
    turn: whole,
    access: whole.agent === 'cs' ? 'cs' : whole.authority,
    capabilities: unusedCapabilities,
    status,
  });
  const failures: unknown[] = [];
  const tools = new ToolBox({ set: new ToolSet(allTools, context.access), context, onFailure: (failure) => failures.push(failure) });
  return {
    failures,
    call: async (name, input = {}) => tools.call({ id: '1', name, arguments: JSON.stringify(input) }, signal),
  };
}

beforeAll(async () => {
  directory = await temporaryDirectory();
  index = await openIndex({ databaseUrl: undefined, dataDir: directory.path, log });
  const tenants = new Tenants({ dataDir: directory.path, index, keySecret: 'k'.repeat(40), log });
  scope = await tenants.create('acme');
  await tenants.create('other');
  await scope.files.writeText('skills/greet/SKILL.md', '---\nname: greet\ndescription: How to greet\n---\n# Greeting\nSay hello.\n');
  await scope.files.writeText('skills/greet/references/words.md', 'hello, hi');
});

afterAll(async () => {
  await index.close();
  await directory[Symbol.asyncDispose]();
});

describe('tools over a tenant’s own files', () => {
  it('write, change, find and read a file', async () => {
    const { call, failures } = box();
    expect(await call('write', { path: 'notes/plan.md', content: 'one\ntwo\n' })).toEqual({
      isError: false,
      output: 'Created notes/plan.md: 8 bytes, 2 lines.',
    });
    expect(await call('edit', { path: 'notes/plan.md', find: 'two', replace: 'three' })).toMatchObject({ isError: false });
    expect(await call('search_files', { query: 'three', path: 'notes' })).toMatchObject({ output: 'notes/plan.md:2: three' });
    expect(await call('read', { path: 'notes/plan.md' })).toMatchObject({ output: '1\tone\n2\tthree' });
    expect((await call('list_files', { path: 'notes' })).output).toBe('notes/plan.md (10 bytes)');
    expect(failures).toEqual([]);
  });

  it.each([
    '../other/IDENTITY.md',
    '/etc/passwd',
    'notes/../../other/IDENTITY.md',
    'tenant.json',
    'keys',
    'sessions/x.json',
    'inbox',
    'SESSIONS/x',
    'a\u0000b',
  ])('answer %j with an error and nothing of what is there', async (path) => {
    const { call, failures } = box();
    const inputs = {
      read: { path },
      write: { path, content: 'x' },
      edit: { path, find: 'x', replace: 'y' },
      search_files: { query: 'a', path },
      list_files: { path },
    };
    for (const [name, input] of Object.entries(inputs)) expect(await call(name, input)).toMatchObject({ isError: true });
    expect(failures).toEqual([]);
  });

  it('follow no link out of the tenant', async () => {
    const root = join(directory.path, 'tenants', 'acme');
    await mkdir(join(root, 'linked'), { recursive: true });
    await writeFile(join(directory.path, 'outside.md'), 'outside');
    await symlink(join(directory.path, 'outside.md'), join(root, 'linked', 'out.md'));
    await symlink(directory.path, join(root, 'linked', 'all'));
    const { call } = box();
    expect(await call('read', { path: 'linked/out.md' })).toMatchObject({ isError: true });
    expect(await call('read', { path: 'linked/all/outside.md' })).toMatchObject({ isError: true });
    expect((await call('search_files', { query: 'outside' })).output).toContain('Nothing found');
  });
});

describe('load_skill', () => {
  it('gives the procedure without its front matter, and the files that belong to it', async () => {
    const { call } = box();
    expect((await call('load_skill', { name: 'greet' })).output).toBe(
      '# Greeting\nSay hello.\n\nFurther files of this skill, to be loaded with file: references/words.md',
    );
    expect((await call('load_skill', { name: 'greet', file: 'references/words.md' })).output).toBe('hello, hi');
  });

  it('says what there is when a name is wrong', async () => {
    const { call, failures } = box();
    expect((await call('load_skill', { name: 'great' })).output).toMatch(/There is no skill "great"\. There are: .*greet/u);
    expect((await call('load_skill', { name: '../greet' })).isError).toBe(true);
    expect((await call('load_skill', { name: 'greet', file: 'nope.md' })).output).toContain('It has: references/words.md');
    expect((await call('load_skill', { name: 'greet', file: '../../MEMORY.md' })).isError).toBe(true);
    expect(failures).toEqual([]);
  });
});

describe('memory', () => {
  it('keeps the owner’s notes and finds them again', async () => {
    const { call } = box();
    expect((await call('memory_write', { text: 'We close at six.', title: 'Opening hours' })).output).toBe(
      'Kept as memory/opening-hours.md.',
    );
    expect((await call('memory_get', { ref: 'memory/opening-hours.md' })).output).toContain('We close at six.');
    expect((await call('memory_get', { ref: 'memory/nothing.md' })).output).toContain('memory/opening-hours.md');
  });

  it('is each contact’s own for cs', async () => {
    const bob = box({ agent: 'cs', authority: 'cs', sender: 'bob' });
    const eve = box({ agent: 'cs', authority: 'cs', sender: 'eve' });
    const { output } = await bob.call('memory_write', { text: 'Bob has a dog.', title: 'Dog' });
    expect(output).toBe('Kept as memory/dog.md.');
    expect((await bob.call('memory_get', { ref: 'memory/dog.md' })).output).toContain('Bob has a dog.');
    expect((await eve.call('memory_get', { ref: 'memory/dog.md' })).output).toBe(
      'There is no note "memory/dog.md". Nothing has been kept yet.',
    );
    expect((await bob.call('memory_get', { ref: 'memory/opening-hours.md' })).isError).toBe(true);
    expect((await box().call('memory_get', { ref: 'memory/dog.md' })).isError).toBe(true);
  });

  it('is kept apart for two anonymous contacts', async () => {
    const one = box({ agent: 'cs', authority: 'cs', sessionId: '1'.repeat(32) });
    const two = box({ agent: 'cs', authority: 'cs', sessionId: '2'.repeat(32) });
    await one.call('memory_write', { text: 'First visitor.', title: 'Visitor' });
    expect((await two.call('memory_get', { ref: 'memory/visitor.md' })).isError).toBe(true);
  });
});

describe('what cs may see of files', () => {
  it('is skills and templates, to read', async () => {
    const { call } = box({ agent: 'cs', authority: 'admin', sender: 'bob' });
    expect((await call('read', { path: 'skills/greet/SKILL.md' })).isError).toBe(false);
    for (const path of ['MEMORY.md', 'notes/plan.md', 'skills/../MEMORY.md', 'skillset/x', 'contacts/x']) {
      expect(await call('read', { path })).toMatchObject({ isError: true });
    }
    expect(await call('write', { path: 'skills/x.md', content: '' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('There is no tool'),
    });
  });
});

describe('sessions and status', () => {
  it('tell of conversations once there are some', async () => {
    const id = 'a'.repeat(32);
    const { call } = box({ sessionId: id });
    expect((await call('session_history')).output).toContain('no finished messages yet');
    const at = '2026-11-20T10:00:00.000Z';
    const session: Session = {
      version: 1,
      id,
      agent: 'admin',
      channel: 'web',
      sender: null,
      revision: 1,
      createdAt: at,
      updatedAt: at,
      title: 'Tea',
      messageCount: 2,
      summary: null,
      turns: [],
      contextTokens: null,
      messages: [
        { id: 'm1', turnId: 't1', at, role: 'user', text: 'Tea?', sent: '<context/>Tea?' },
        { id: 'm2', turnId: 't1', at, role: 'assistant', text: 'Yes.' },
      ],
    };
    await scope.sessions.publish(session);
    await scope.index.putSession(session);
    expect((await call('sessions_list')).output).toBe(`${id}  ${at}  admin  web  2 messages  Tea`);
    expect((await call('session_history')).output).toBe(`Tea\n\n#1 user, ${at}\nTea?\n\n#2 assistant, ${at}\nYes.`);
    expect((await call('session_history', { limit: 1 })).output).toContain('[1 earlier messages; page back with before 2]');
    expect((await call('session_history', { before: 2 })).output).toContain('#1 user');
    expect((await call('status')).output).toContain('Context: about 500 of 1000 tokens (50 %)');
  });
});
