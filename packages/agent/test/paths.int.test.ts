import { execFile } from 'node:child_process';
import { link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { allTools, type ToolOutcome } from '@concierge/agent';
import { isToolName, mayUseTool } from '@concierge/contract';
import { ToolTenant, type Box } from './tool-tenant.ts';

const CANARY = 'canary-of-somebody-else';
const PLANTED = 'planted';
const SWAPS = 200;
const cs = { agent: 'cs', authority: 'cs', sender: 'bob' } as const;

/** Everything that takes a path or a name of a file, with the arguments that put `path` in its place. */
const takers: readonly { readonly tool: string; readonly uses: (path: string) => Record<string, unknown> }[] = [
  { tool: 'read', uses: (path) => ({ path }) },
  { tool: 'read', uses: (path) => ({ path: `templates/${path}` }) },
  { tool: 'write', uses: (path) => ({ path, content: PLANTED }) },
  { tool: 'write', uses: (path) => ({ path: `templates/${path}`, content: PLANTED }) },
  { tool: 'edit', uses: (path) => ({ path, find: CANARY, replace: 'x' }) },
  { tool: 'list_files', uses: (path) => ({ path }) },
  { tool: 'list_files', uses: (path) => ({ path, recursive: true, hidden: true }) },
  { tool: 'search_files', uses: (path) => ({ path, query: 'canary' }) },
  { tool: 'search_files', uses: (path) => ({ path, query: 'can.ry', regex: true }) },
  { tool: 'load_skill', uses: (path) => ({ name: path }) },
  { tool: 'load_skill', uses: (path) => ({ name: 'take-notes', file: path }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'create', name: path, description: 'x', body: PLANTED }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'delete', name: path }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'restore', name: path, version: path }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'restore', name: 'take-notes', version: path }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'write_file', name: 'take-notes', file: path, text: PLANTED }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'remove_file', name: 'take-notes', file: path }) },
  { tool: 'manage_skill', uses: (path) => ({ action: 'update', name: path, body: PLANTED }) },
  { tool: 'render_template', uses: (path) => ({ name: path }) },
  { tool: 'memory_get', uses: (path) => ({ ref: path }) },
  { tool: 'memory_get', uses: (path) => ({ ref: `memory/${path}` }) },
  { tool: 'memory_forget', uses: (path) => ({ ref: path }) },
  { tool: 'memory_forget', uses: (path) => ({ ref: `memory/${path}` }) },
  { tool: 'view_attachment', uses: (path) => ({ id: path }) },
];
const present = takers
  .filter(({ tool }) => allTools.some(({ name }) => name === tool))
  .map((taker) => ({ ...taker, place: JSON.stringify(taker.uses('…')) }));

/** The forms that no name of a file may have, and the ways out of a folder. */
const forms: Readonly<Record<string, string>> = {
  NUL: 'a\u0000.md',
  'NUL before an ending': '../other/IDENTITY.md\u0000.md',
  'a control character': 'a\u0007b.md',
  'a line break': 'a\nb.md',
  'a C1 control character': 'a\u0085b.md',
  'a backslash': 'a\\b.md',
  'a way up with backslashes': '..\\other\\IDENTITY.md',
  'a dot': './IDENTITY.md',
  'two dots': '../other/IDENTITY.md',
  'two dots inside': 'templates/../../other/IDENTITY.md',
  'two dots at the end': 'templates/..',
  'an empty part': 'templates//x.md',
  'an absolute path': '/etc/passwd',
  'a path of the host': '/proc/self/environ',
  'a name of over 255 bytes': `${'ä'.repeat(128)}.md`,
  'a path of over 4096 bytes': `${'a'.repeat(200)}/`.repeat(25),
  'more parts than a path may have': 'a/'.repeat(40),
  'full-width dots': '．．/other/IDENTITY.md',
  'a one-dot leader': '․․/other/IDENTITY.md',
  'a name that NFKC changes': 'ﬁle.md',
  'a full-width name': 'ＩＤＥＮＴＩＴＹ.md',
  'a combining accent': 'cafe\u0301.md',
  'half a pair': 'a\ud800.md',
  'the beginning of temporary files': '.tmp-x',
  'a private folder in full width': 'ｋｅｙｓ',
  'a URL': 'file:///etc/passwd',
};

/** Ours and not the tenant's, at the top of its folder; names like any other below. */
const privatePaths = [
  'tenant.json',
  'keys',
  'keys/x.json',
  'sessions/x.json',
  'SESSIONS/x.json',
  'inbox/x.json',
  'contacts/x/MEMORY.md',
  'uploads/x/content',
  'channels/telegram.json',
  'cron/x.json',
  'handoffs/x.json',
  'outbox/x.json',
  'widget/widget.json',
  'events/endpoints/x.json',
];
const topTools = new Set(['read', 'write', 'edit', 'list_files', 'search_files', 'memory_get', 'memory_forget']);
const atTop = present.filter(({ tool, uses }) => topTools.has(tool) && Object.values(uses('keys')).includes('keys'));

/** Odd, but names of one's own that lead nowhere else. */
const oddPaths = ['%2e%2e/other/IDENTITY.md', '~/x.md', '$HOME', '*', '-rf', 'con.md', 'a:b.md', 'a\u202eb.md'];

let fixture: ToolTenant;
let root: string;
let dataDir: string;
let admin: Box;
let customer: Box;

beforeAll(async () => {
  fixture = await ToolTenant.create();
  ({ root } = fixture.scope);
  dataDir = join(root, '..', '..');
  const other = await fixture.tenants.create('other');
  await other.files.writeText('IDENTITY.md', CANARY);
  await writeFile(join(dataDir, 'outside.md'), CANARY);
  admin = fixture.box();
  customer = fixture.box(cs);
});

afterAll(async () => {
  await fixture[Symbol.asyncDispose]();
});

/** Calls a tool for both agents; no output may contain another tenant's data, and nothing may break. */
async function tryBoth(tool: string, input: Record<string, unknown>): Promise<ToolOutcome[]> {
  const outcomes = [await admin.call(tool, input), await customer.call(tool, input)];
  expect(isToolName(tool) && (mayUseTool('cs', tool) || outcomes[1]?.output.startsWith('There is no tool'))).toBe(true);
  for (const { output } of outcomes) {
    expect(output).not.toContain(CANARY);
    expect(output).not.toContain(dataDir);
    expect(output).not.toContain('failed inside the service');
  }
  expect([...admin.failures, ...customer.failures]).toEqual([]);
  return outcomes;
}

/** What lies in the data directory beside the tenant, by name. */
async function surroundings(): Promise<string[]> {
  const names = await readdir(join(dataDir, 'tenants'), { recursive: true });
  return names.filter((name) => !name.startsWith('acme/')).toSorted();
}

describe.each(Object.entries(forms))('a path with %s', (_, path) => {
  it.each(present)('is refused by $tool $place', async ({ tool, uses }) => {
    const input = uses(path);
    const before = await surroundings();
    const outcomes = await tryBoth(tool, input);
    expect(await surroundings()).toEqual(before);
    for (const { isError } of outcomes) expect(isError).toBe(true);
  });
});

describe.each(privatePaths)('the private path %j', (path) => {
  it.each(atTop)('is refused by $tool $place', async ({ tool, uses }) => {
    for (const { isError } of await tryBoth(tool, uses(path))) expect(isError).toBe(true);
  });

  it('leads nowhere from anywhere else', async () => {
    const settings = await readFile(join(root, 'tenant.json'), 'utf8');
    for (const { tool, uses } of present) await tryBoth(tool, uses(path));
    expect(await readFile(join(root, 'tenant.json'), 'utf8')).toBe(settings);
    for (const folder of ['keys', 'sessions', 'inbox', 'contacts', 'uploads', 'channels'])
      expect((await readdir(join(root, folder))).filter((name) => !name.startsWith('.') && !/^k_|^[0-9a-z]{12,}/u.test(name))).toEqual([]);
  });
});

describe.each(oddPaths)('the odd path %j', (path) => {
  it('leads nowhere else', async () => {
    const before = await surroundings();
    for (const { tool, uses } of present) await tryBoth(tool, uses(path));
    expect(await surroundings()).toEqual(before);
  });
});

describe('what lies in the workspace and is no plain file', () => {
  let server: Server;
  const traps = ['link.md', 'hard.md', 'pipe.md', 'socket.md', 'folder-link/outside.md', 'loop/x.md', 'device.md', 'dangling.md'];

  /** In every folder that a tool reads from. */
  const folders = ['traps', 'templates', 'memory', 'skills/take-notes'];

  beforeAll(async () => {
    server = createServer();
    for (const folder of folders) {
      const at = (name: string): string => join(root, folder, name);
      await mkdir(join(root, folder), { recursive: true });
      await symlink(join(dataDir, 'outside.md'), at('link.md'));
      await link(join(dataDir, 'outside.md'), at('hard.md'));
      await promisify(execFile)('mkfifo', [at('pipe.md')]);
      await symlink(dataDir, at('folder-link'));
      await symlink('loop', at('loop'));
      await symlink('/dev/zero', at('device.md'));
      await symlink('/nowhere', at('dangling.md'));
    }
    // The path of a socket is short: it is made there and moved.
    const short = join(dataDir, 's');
    await new Promise<void>((resolve) => {
      server.listen(short, resolve);
    });
    await rename(short, join(root, 'traps', 'socket.md'));
  });

  afterAll(async () => {
    await new Promise((resolve) => {
      server.close(resolve);
    });
    const laid = ['link.md', 'hard.md', 'pipe.md', 'folder-link', 'loop', 'device.md', 'dangling.md'];
    for (const folder of folders) for (const name of laid) await rm(join(root, folder, name), { force: true });
  });

  it('is left out of lists and searches', async () => {
    for (const path of ['traps', 'templates']) {
      const list = await admin.call('list_files', { path, recursive: true });
      for (const trap of ['link.md', 'hard.md', 'pipe.md', 'folder-link/outside.md', 'device.md'])
        expect(list.output.split('\n').map((line) => line.replace(/ \(.*/u, ''))).not.toContain(`${path}/${trap}`);
      expect((await admin.call('search_files', { query: 'canary', path })).output).not.toContain(CANARY);
    }
    expect((await admin.call('load_skill', { name: 'take-notes' })).output).not.toContain('link.md');
    expect((await admin.call('render_template', { name: 'nothing' })).output).not.toContain('link.md');
    expect(admin.failures).toEqual([]);
  });

  describe.each(traps)('%s', (name) => {
    it.each(present)('is neither read nor replaced by $tool $place', async ({ tool, uses }) => {
      for (const path of [name, `traps/${name}`]) await tryBoth(tool, uses(path));
      expect(await readFile(join(dataDir, 'outside.md'), 'utf8')).toBe(CANARY);
      expect(await readdir(dataDir)).not.toContain('x.md');
    });
  });
});

describe('names that some reader takes for one', () => {
  it('cannot both be made, whatever makes them', async () => {
    expect(await admin.call('write', { path: 'duplicates/Note.md', content: 'x' })).toMatchObject({ isError: false });
    for (const path of ['duplicates/note.md', 'duplicates/NOTE.MD', 'Duplicates/other.md'])
      expect(await admin.call('write', { path, content: 'x' })).toMatchObject({
        isError: true,
        output: expect.stringContaining('differs only in case'),
      });
    const file = (name: string): Record<string, unknown> => ({ action: 'write_file', name: 'take-notes', file: name, text: 'x' });
    expect(await admin.call('manage_skill', file('references/A.md'))).toMatchObject({ isError: false });
    for (const name of ['references/a.md', 'References/b.md', 'skill.md'])
      expect(await admin.call('manage_skill', file(name))).toMatchObject({ isError: true });
    expect(await readdir(join(root, 'duplicates'))).toEqual(['Note.md']);
  });
});

describe('a folder that is nested without end', () => {
  it('is listed and searched as far as is sensible, and breaks nothing', async () => {
    // Deeper than a path may be long: made step by step, as a command in a sandbox could.
    const script =
      'i=0; while [ $i -lt 300 ]; do mkdir -p dddddddddddddddd && cd dddddddddddddddd || exit 0; i=$((i+1)); done; echo canary > deep.md';
    await mkdir(join(root, 'deep'));
    await promisify(execFile)('sh', ['-c', script], { cwd: join(root, 'deep') });
    expect(await admin.call('list_files', { path: 'deep', recursive: true })).toMatchObject({ isError: false });
    expect(await admin.call('search_files', { path: 'deep', query: 'canary' })).toMatchObject({ isError: false });
    expect(admin.failures).toEqual([]);
    await promisify(execFile)('rm', ['-rf', join(root, 'deep')]);
  });
});

describe('a folder that is swapped for a link while tools are at work', () => {
  it('leads none of them out', async () => {
    const real = join(root, 'swapped');
    const away = join(root, 'swapped-away');
    const outside = join(dataDir, 'tenants', 'other');
    await mkdir(real);
    await writeFile(join(real, 'IDENTITY.md'), 'own');
    const outputs: string[] = [];
    let isSwapping = true;
    const swapping = (async () => {
      // As long as it takes for a tool to find the folder in its place.
      for (let swaps = 0; swaps < SWAPS || !outputs.some((output) => output.includes('own')); swaps += 1) {
        await rename(real, away);
        await symlink(outside, real);
        await rm(real);
        await rename(away, real);
      }
    })().finally(() => {
      isSwapping = false;
    });
    while (isSwapping) {
      // Not write: it would make the folder anew while it is away.
      const uses: readonly (readonly [string, Record<string, unknown>])[] = [
        ['read', { path: 'swapped/IDENTITY.md' }],
        ['search_files', { path: 'swapped', query: 'canary' }],
        ['edit', { path: 'swapped/IDENTITY.md', find: CANARY, replace: 'x' }],
        ['list_files', { path: 'swapped' }],
      ];
      for (const [name, input] of uses) outputs.push((await admin.call(name, input)).output);
    }
    await swapping;
    // The search repeats nothing of a query that it has not found.
    for (const output of outputs) expect(output).not.toContain(CANARY);
    expect(outputs.some((output) => output.includes('own'))).toBe(true);
    expect(await readFile(join(outside, 'IDENTITY.md'), 'utf8')).toBe(CANARY);
  });
});
