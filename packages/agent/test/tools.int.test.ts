import { describe, expect, it } from '@jest/globals';
import { allTools, TurnTools, toolScope, ToolRegistry, type ToolOutcome, type TurnStatus } from '@concierge/agent';
import type { AcceptedTurn, Session } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { unusedCapabilities } from '../src/fixtures/tool-fixture.ts';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const signal = new AbortController().signal;
let opened: TestTenants;
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
    acceptedAtMs: 0,
    ...turn,
  } as const;
  const access = whole.agent === 'cs' ? 'cs' : whole.authority;
  const failures: unknown[] = [];
  const tools = new TurnTools({
    set: new ToolRegistry(allTools, access),
    contextFor: (call) => toolScope({ scope, turn: whole, access, capabilities: unusedCapabilities, status }, call),
    onFailure: (failure) => failures.push(failure),
  });
  return {
    failures,
    call: async (name, input = {}) => tools.call({ id: '1', name, arguments: JSON.stringify(input) }, signal),
  };
}

setUpOnce(async (stack) => {
  opened = stack.use(await TestTenants.start());
  scope = await opened.scope();
  await opened.scope('other');
  await scope.files.writeText('skills/greet/SKILL.md', '---\nname: greet\ndescription: How to greet\n---\n# Greeting\nSay hello.\n');
  await scope.files.writeText('skills/greet/references/words.md', 'hello, hi');
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
    const root = join(opened.dataDir, 'tenants', 'acme');
    await mkdir(join(root, 'linked'), { recursive: true });
    await writeFile(join(opened.dataDir, 'outside.md'), 'outside');
    await symlink(join(opened.dataDir, 'outside.md'), join(root, 'linked', 'out.md'));
    await symlink(opened.dataDir, join(root, 'linked', 'all'));
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

  it('names what there is when a name is wrong', async () => {
    const { call, failures } = box();
    expect((await call('load_skill', { name: 'great' })).output).toMatch(/There is no skill "great"\. There are: .*greet/u);
    expect((await call('load_skill', { name: '../greet' })).isError).toBe(true);
    expect((await call('load_skill', { name: 'greet', file: 'nope.md' })).output).toContain('It has: references/words.md');
    expect((await call('load_skill', { name: 'greet', file: '../../MEMORY.md' })).isError).toBe(true);
    expect(failures).toEqual([]);
  });

  it('neither names nor gives what begins with a dot, at whatever depth', async () => {
    const hidden = ['.env', '.git/config', 'references/.draft.md', 'references/.old/prices.md'];
    for (const file of hidden) await scope.files.writeText(`skills/greet/${file}`, 'what the owner put aside');
    for (const turn of [{ agent: 'cs', authority: 'cs', sender: 'bob' }, {}] as const) {
      const { call } = box(turn);
      expect((await call('load_skill', { name: 'greet' })).output).toMatch(/with file: references\/words\.md$/u);
      for (const file of hidden)
        expect(await call('load_skill', { name: 'greet', file })).toMatchObject({
          isError: true,
          output: `The skill greet has no file ${file}. It has: references/words.md.`,
        });
    }
    expect((await box().call('read', { path: 'skills/greet/.git/config' })).output).toContain('what the owner put aside');
    for (const file of hidden) await scope.files.remove(`skills/greet/${file}`);
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

  it('is searched, and read from where something was found', async () => {
    const { call, failures } = box();
    await call('write', { path: 'memory/returns.md', content: '# Returns\n\nWithin thirty days.\n\n## Shoes\n\nShoes must be unworn.\n' });
    const { output } = await call('memory_search', { query: 'can worn shoes come back', scope: 'notes' });
    expect(output).toContain('1. memory/returns.md, line 7 (Returns › Shoes), changed 20');
    expect(output).toContain('Shoes must be unworn.');
    expect((await call('memory_get', { ref: 'memory/returns.md', offset: 7 })).output).toBe('Shoes must be unworn.\n');
    expect((await call('memory_search', { query: 'zebra' })).output).toBe('Nothing was found. Try other words, or fewer.');
    expect(await call('memory_search', { query: ' ' })).toMatchObject({ isError: true, output: expect.stringContaining('query') });
    expect(await call('memory_search', { query: 'x', limit: 500 })).toMatchObject({ isError: true });
    expect(failures).toEqual([]);
  });

  it('is searched in pages', async () => {
    const { call } = box();
    for (let index = 0; index < 5; index += 1) await call('memory_write', { title: `Pebble ${String(index)}`, text: 'A pebble.' });
    const first = (await call('memory_search', { query: 'pebble', limit: 3 })).output;
    expect(first).toContain('[3 of 5 results; continue with offset 3]');
    expect((await call('memory_search', { query: 'pebble', limit: 3, offset: 3 })).output).toMatch(/^4\. [^[]*5\. [^[]*$/u);
    expect((await call('memory_search', { query: 'pebble', offset: 9 })).output).toBe('There are only 5 results.');
  });

  it('forgets a note for good, but no MEMORY.md and no conversation', async () => {
    const { call, failures } = box();
    await call('memory_write', { title: 'Old price', text: 'The quokka costs ten.' });
    expect((await call('memory_search', { query: 'quokka' })).output).toContain('memory/old-price.md');
    expect(await call('memory_forget', { ref: 'memory/old-price.md' })).toEqual({ isError: false, output: 'Removed memory/old-price.md.' });
    expect((await call('memory_search', { query: 'quokka' })).output).toContain('Nothing was found');
    expect(await call('memory_forget', { ref: 'memory/old-price.md' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('There is no note'),
    });
    expect(await call('memory_forget', { ref: 'MEMORY.md' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('with edit'),
    });
    expect(await call('memory_forget', { ref: 'b'.repeat(32) })).toMatchObject({
      isError: true,
      output: expect.stringContaining('session_history'),
    });
    for (const ref of ['IDENTITY.md', 'tenant.json', 'memory/../SOUL.md', '../other/MEMORY.md', 'contacts/x', 'memory'])
      expect(await call('memory_forget', { ref })).toMatchObject({ isError: true });
    expect(await box({ agent: 'cs', authority: 'cs', sender: 'bob' }).call('memory_forget', { ref: 'memory/dog.md' })).toMatchObject({
      isError: true,
      output: expect.stringContaining('There is no tool'),
    });
    expect(failures).toEqual([]);
  });

  it('of a long note comes in pages', async () => {
    const { call } = box();
    const lines = Array.from({ length: 4000 }, (_, index) => `line ${String(index + 1)} of a long list of things`);
    await call('write', { path: 'memory/long.md', content: lines.join('\n') });
    const { output } = await call('memory_get', { ref: 'memory/long.md' });
    const next = /\[lines 1 to (\d+) of 4000; continue with offset (\d+)\]$/u.exec(output);
    expect(Number(next?.[2])).toBe(Number(next?.[1]) + 1);
    expect((await call('memory_get', { ref: 'memory/long.md', offset: Number(next?.[2]) })).output).toMatch(
      new RegExp(`^line ${next?.[2] ?? ''} `, 'u'),
    );
    expect((await call('memory_get', { ref: 'memory/long.md', offset: 4001 })).output).toContain('has 4000 lines');
    await call('write', { path: 'memory/endless.md', content: `${'é'.repeat(50_000)}\nend` });
    expect((await call('memory_get', { ref: 'memory/endless.md' })).output).toMatch(/é\n\[line 1 of 2, cut\]$/u);
  });

  it('that is full is an error that explains what to do, without plans to a customer’s agent', async () => {
    const { call, failures } = box();
    await scope.updateSettings({ limits: { memoryBytes: 10 } });
    try {
      const outcome = await call('memory_write', { text: 'One more thing to keep.' });
      expect(outcome).toMatchObject({ isError: true, output: expect.stringMatching(/Nothing was kept.*10 bytes.*memory_forget/u) });
      const cs = await box({ agent: 'cs', authority: 'cs', sender: 'bob' }).call('memory_write', { text: 'One more thing.' });
      expect(cs).toMatchObject({ isError: true, output: expect.stringContaining('no room for more notes') });
      expect(cs.output).not.toContain('bytes');
      expect(failures).toEqual([]);
    } finally {
      await scope.updateSettings({ limits: { memoryBytes: null } });
    }
    expect(await call('memory_write', { text: 'One more thing to keep.' })).toMatchObject({ isError: false });
  });

  it('is found only for its owner', async () => {
    const bob = box({ agent: 'cs', authority: 'cs', sender: 'bob', sessionId: '3'.repeat(32) });
    const eve = box({ agent: 'cs', authority: 'cs', sender: 'eve', sessionId: '4'.repeat(32) });
    const nobody = box({ agent: 'cs', authority: 'cs', sessionId: '5'.repeat(32) });
    await bob.call('memory_write', { text: 'Bob has a narwhal.', title: 'Narwhal' });
    await box().call('memory_write', { text: 'The owner has a narwhal.', title: 'Private' });
    expect((await bob.call('memory_search', { query: 'narwhal' })).output).toContain('Bob has a narwhal.');
    expect((await bob.call('memory_search', { query: 'narwhal' })).output).not.toContain('owner');
    for (const other of [eve, nobody])
      expect((await other.call('memory_search', { query: 'narwhal' })).output).toContain('Nothing was found');
    const owners = (await box().call('memory_search', { query: 'narwhal' })).output;
    expect(owners).toContain('The owner has a narwhal.');
    expect(owners).not.toContain('Bob');
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
  it('list conversations once there are some', async () => {
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
    const found = (await call('session_history', { query: 'teas' })).output;
    expect(found).toContain(`Tea\n\n#1 user, ${at}\nTea?`);
    expect(found).not.toContain('Yes.');
    expect((await call('session_history', { query: 'coffee' })).output).toContain('Nothing in this conversation is about "coffee"');
    expect(
      (await box({ agent: 'cs', authority: 'cs', sender: 'bob' }).call('session_history', { session_id: id, query: 'tea' })).isError,
    ).toBe(true);
    expect((await call('memory_search', { query: 'tea', scope: 'conversations' })).output).toContain(
      '1. this conversation, message #1 (Tea)',
    );
    expect((await call('status')).output).toContain('Context: about 500 of 1000 tokens (50 %)');
  });
});
