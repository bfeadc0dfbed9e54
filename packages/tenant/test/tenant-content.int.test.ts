import { mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { deriveSessionId } from '../src/sessions/session-ids.ts';
import type { TenantScope } from '../src/tenant-scope.ts';
import { newSession, startTenants, turnRecord } from './support.ts';

const code = (name: string): object => expect.objectContaining({ code: name });
const skillText = (name: string, more = ''): string =>
  `---\nname: ${name}\ndescription: What ${name} is for\n${more}---\n# How\n\nDo it.\n`;
const names = (context: { readonly files: readonly { readonly name: string }[] }): string[] => context.files.map((file) => file.name);

async function readText(
  scope: TenantScope,
  name: string,
  request: Parameters<TenantScope['context']['load']>[0],
): Promise<string | undefined> {
  return (await scope.context.load(request)).files.find((file) => file.name === name)?.text;
}

describe('context files', () => {
  it('are in the next turn as they were edited, however they were', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const owner = { agent: 'admin', sender: null };
    for (let round = 0; round < 20; round += 1) {
      await writeFile(join(scope.root, 'SOUL.md'), `in place ${String(round % 10)}`);
      expect(await readText(scope, 'SOUL.md', owner)).toBe(`in place ${String(round % 10)}`);
      await scope.files.writeText('SOUL.md', `replaced ${String(round % 10)}`);
      expect(await readText(scope, 'SOUL.md', owner)).toBe(`replaced ${String(round % 10)}`);
    }
    await scope.files.remove('SOUL.md');
    expect(names(await scope.context.load(owner))).not.toContain('SOUL.md');
  });

  it('are seen as edited by each of many turns that start at once', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const loads = Array.from({ length: 50 }, async (_, index) => {
      await scope.files.writeText('TOOLS.md', `version ${String(index)}`);
      return { index, text: await readText(scope, 'TOOLS.md', { agent: 'admin', sender: null }) };
    });
    for (const { index, text } of await Promise.all(loads)) expect(Number(text?.replace('version ', ''))).toBeGreaterThanOrEqual(index);
  });

  it('stand in prompt order, BOOTSTRAP* last by name, empty ones not at all', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('BOOTSTRAP-2.md', 'second');
    await scope.files.writeText('BOOTSTRAP.md', 'first');
    await scope.files.writeText('TOOLS.md', ' \n');
    await scope.files.writeText('NOTES.md', 'not part of it');
    expect(names(await scope.context.load({ agent: 'admin', sender: null }))).toEqual([
      'IDENTITY.md',
      'SOUL.md',
      'USER.md',
      'AGENTS.md',
      'MEMORY.md',
      'BOOTSTRAP-2.md',
      'BOOTSTRAP.md',
    ]);
  });

  it('give cs what is known of its contact, and nothing of the owner or of another contact', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('USER.md', 'owner canary');
    await scope.files.writeText('MEMORY.md', 'owner canary');
    await scope.memory.forContact('anna').write({ text: 'anna canary' });
    await scope.memory.forContact('ben').write({ text: 'ben canary' });
    const anna = await scope.context.load({ agent: 'cs', sender: 'anna' });
    expect(names(anna)).toEqual(
      ['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'TOOLS.md', 'MEMORY.md'].toSorted((a, b) => names(anna).indexOf(a) - names(anna).indexOf(b)),
    );
    const text = JSON.stringify(anna.files);
    expect(text).toContain('anna canary');
    expect(text).not.toContain('owner canary');
    expect(text).not.toContain('ben canary');
    expect(names(await scope.context.load({ agent: 'cs', sender: null }))).toEqual(['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'TOOLS.md']);
    expect(JSON.stringify((await scope.context.load({ agent: 'admin', sender: 'anna' })).files)).toContain('owner canary');
    expect(JSON.stringify((await scope.context.load({ agent: 'sales', sender: 'anna', memory: 'contact' })).files)).not.toContain(
      'owner canary',
    );
  });

  it('that are links or no text are left out', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await writeFile(join(world.dataDir, 'secret'), 'secret');
    await symlink(join(world.dataDir, 'secret'), join(scope.root, 'BOOTSTRAP.md'));
    await writeFile(join(scope.root, 'TOOLS.md'), Buffer.from([0xff, 0xfe]));
    expect(names(await scope.context.load({ agent: 'admin', sender: null }))).toEqual([
      'IDENTITY.md',
      'SOUL.md',
      'USER.md',
      'AGENTS.md',
      'MEMORY.md',
    ]);
  });

  it('are given by their beginning when they are long, whole characters only, and by their whole size', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await writeFile(join(scope.root, 'MEMORY.md'), `a${'é'.repeat(2_000_000)}`);
    await writeFile(join(scope.root, 'HEARTBEAT.md'), 'h'.repeat(100_000));
    const { files, heartbeat, heartbeatBytes, unusable } = await scope.context.load({ agent: 'admin', sender: null });
    expect(files.find(({ name }) => name === 'MEMORY.md')).toEqual({ name: 'MEMORY.md', text: `a${'é'.repeat(32_767)}`, bytes: 4_000_001 });
    expect([heartbeat?.length, heartbeatBytes]).toEqual([65_536, 100_000]);
    expect(unusable).toEqual([]);
  });

  it('that cannot be used are named with the reason', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await writeFile(join(scope.root, 'TOOLS.md'), Buffer.from([0xff, 0xfe]));
    for (let place = 10; place < 40; place += 1) await writeFile(join(scope.root, `BOOTSTRAP-${String(place)}.md`), 'first');
    const { files, unusable } = await scope.context.load({ agent: 'admin', sender: null });
    expect(files.filter(({ name }) => name.startsWith('BOOTSTRAP'))).toHaveLength(20);
    expect(unusable).toEqual([
      { name: 'TOOLS.md', reason: 'The file is not UTF-8 text.' },
      { name: 'BOOTSTRAP-30.md', reason: 'a prompt has at most 20 BOOTSTRAP files' },
    ]);
  });

  it('do not stop the process with comments that are never closed', async () => {
    await using run = await startTenants();
    const scope = await run.tenants.create('acme');
    const text = '<!--'.repeat(limits.fileMaxBytes / 4);
    await scope.files.writeText('HEARTBEAT.md', text);
    const { heartbeat } = await scope.context.load({ agent: 'admin', sender: null });
    expect(heartbeat === null || text.startsWith(heartbeat)).toBe(true);
  });

  it('have a heartbeat when there is more in it than comments', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const heartbeat = async (): Promise<string | null> => (await scope.context.load({ agent: 'admin', sender: null })).heartbeat;
    expect(await heartbeat()).toBeNull();
    await scope.files.writeText('HEARTBEAT.md', '<!-- a\nb -->\nWe are closed today.\n');
    expect(await heartbeat()).toBe('<!-- a\nb -->\nWe are closed today.\n');
    expect(names(await scope.context.load({ agent: 'admin', sender: null }))).not.toContain('HEARTBEAT.md');
    await scope.files.writeText('HEARTBEAT.md', ' <!-- a --> <!-- <!-- b --> \n<!---->');
    expect(await heartbeat()).toBeNull();
    await scope.files.writeText('HEARTBEAT.md', '<!-- a --> <!-- not closed');
    expect(await heartbeat()).toBe('<!-- a --> <!-- not closed');
    await scope.files.remove('HEARTBEAT.md');
    expect(await heartbeat()).toBeNull();
  });
});

describe('skills', () => {
  it('are listed by name, with the trigger from either place', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('skills/b/SKILL.md', skillText('b', 'metadata:\n  trigger: do b\n'));
    await scope.files.writeText('skills/a/SKILL.md', skillText('a', 'trigger: do a\n').replace('What a', 'What\n  a'));
    expect(await scope.skills.list()).toEqual([
      { name: 'a', description: 'What a is for', trigger: 'do a', path: 'skills/a/SKILL.md' },
      { name: 'b', description: 'What b is for', trigger: 'do b', path: 'skills/b/SKILL.md' },
      expect.objectContaining({ name: 'take-notes' }),
    ]);
    await scope.files.writeText('skills/a/SKILL.md', skillText('a'));
    expect((await scope.skills.list())[0]).toMatchObject({ trigger: '' });
    await scope.files.removeFolder('skills/b');
    expect((await scope.skills.list()).map((skill) => skill.name)).toEqual(['a', 'take-notes']);
  });

  it('that cannot be used are reported with the reason', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('skills/README.md', 'not a skill');
    await scope.files.writeText('skills/other-name/SKILL.md', skillText('x'));
    await scope.files.writeText('skills/Bad_Name/SKILL.md', skillText('Bad_Name'));
    await scope.files.writeText('skills/js/SKILL.md', '---js\n{}\n---\n');
    await scope.files.writeText('skills/yaml/SKILL.md', '---\nname: [\n---\n');
    await scope.files.writeText('skills/long/SKILL.md', `---\nname: long\ndescription: ${'x'.repeat(1025)}\n---\n`);
    await scope.files.writeText('skills/empty/notes.md', 'x');
    await mkdir(join(scope.root, 'skills', 'linked'));
    await writeFile(join(world.dataDir, 'secret'), skillText('linked'));
    await symlink(join(world.dataDir, 'secret'), join(scope.root, 'skills', 'linked', 'SKILL.md'));
    const report = await scope.reindexSkills();
    expect(report.indexed).toBe(1);
    expect(report.invalid.map((skill) => skill.path.split('/')[1])).toEqual([
      'Bad_Name',
      'empty',
      'js',
      'linked',
      'long',
      'other-name',
      'yaml',
    ]);
    for (const { reason } of report.invalid) expect(reason).not.toContain(world.dataDir);
    await expect(scope.skills.load('js')).rejects.toThrow(code('invalid_request'));
    await expect(scope.skills.load('linked')).rejects.toThrow(code('invalid_request'));
  });

  it('are loaded whole, with the files they bring along', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('skills/a/SKILL.md', skillText('a'));
    await scope.files.writeText('skills/a/forms/letter.md', 'Dear …');
    const loaded = await scope.skills.load('a');
    expect(loaded).toMatchObject({ skill: { name: 'a' }, body: '# How\n\nDo it.\n', files: ['forms/letter.md'] });
    expect(await scope.skills.readFile('a', 'forms/letter.md')).toBe('Dear …');
    await expect(scope.skills.readFile('a', '../../tenant.json')).rejects.toThrow(code('invalid_request'));
    await expect(scope.skills.load('missing')).rejects.toThrow(code('not_found'));
    await expect(scope.skills.load('../acme')).rejects.toThrow(code('not_found'));
  });

  it('are loaded with all of 200 files, whatever begins with a dot beside them', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('skills/a/SKILL.md', skillText('a'));
    const folder = join(scope.root, 'skills', 'a');
    await mkdir(join(folder, '.git'));
    for (let index = 0; index < 300; index += 1) await writeFile(join(folder, '.git', String(index)), 'x');
    const folders = Array.from({ length: 200 }, (_, index) => String(index));
    for (const name of folders) {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, 'letter.md'), 'Dear …');
    }
    expect((await scope.skills.load('a')).files).toEqual(folders.map((name) => `${name}/letter.md`).toSorted());
  });

  it('are not there when there is no folder for them', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.removeFolder('skills');
    expect(await scope.skills.scan()).toEqual({ valid: [], invalid: [] });
  });
});

describe('memory', () => {
  it('is written without losing anything, and found by its reference', async () => {
    await using world = await startTenants();
    const { memory } = await world.tenants.create('acme');
    expect(await memory.write({ text: ' likes tea \nvery much' })).toEqual({ ref: 'MEMORY.md' });
    const { ref } = await memory.write({ text: 'First.', title: 'Größe & Maße: Büro' });
    expect(ref).toBe('memory/größe-maße-büro.md');
    await memory.write({ text: 'Second.', title: 'größe MASSE büro' });
    await memory.write({ text: 'Third.', title: 'Größe & Maße: Büro' });
    expect((await memory.get('MEMORY.md')).text).toMatch(/^# Memory\n[^]*- \d{4}-\d\d-\d\d: likes tea \n {2}very much\n$/u);
    expect((await memory.get(ref)).text).toMatch(
      /^# Größe & Maße: Büro\n\n## \d{4}-\d\d-\d\d\n\nFirst\.\n\n## \d{4}-\d\d-\d\d\n\nThird\.\n$/u,
    );
    expect((await memory.list()).map((entry) => entry.path)).toEqual(['MEMORY.md', ref, 'memory/größe-masse-büro.md'].toSorted());
    await memory.forget(ref);
    await expect(memory.get(ref)).rejects.toThrow(code('not_found'));
    await expect(memory.write({ text: '  ' })).rejects.toThrow(code('invalid_request'));
  });

  it('keeps titles apart whose marks alone differ, as the vowels of Thai and Hindi', async () => {
    await using world = await startTenants();
    const { memory } = await world.tenants.create('acme');
    for (const title of ['ปี', 'ปู', 'काल', 'कील'])
      expect(await memory.write({ text: `About ${title}.`, title })).toEqual({ ref: `memory/${title}.md` });
    await memory.forget('memory/ปี.md');
    expect((await memory.get('memory/ปู.md')).text).toContain('About ปู.');
    expect(await memory.write({ text: 'A bicycle.', title: '❤️ Wishes: 1️⃣' })).toEqual({ ref: 'memory/wishes-1.md' });
  });

  it.each(['../tenant.json', 'tenant.json', 'memory/../tenant.json', 'USER.md', 'contacts/x/MEMORY.md', 'memory'])(
    'does not reach %j',
    async (ref) => {
      await using world = await startTenants();
      const { memory } = await world.tenants.create('acme');
      await expect(memory.get(ref)).rejects.toThrow(expect.objectContaining({ code: expect.stringMatching(/not_found|invalid_request/u) }));
      await expect(memory.forget(ref)).rejects.toThrow(
        expect.objectContaining({ code: expect.stringMatching(/not_found|invalid_request/u) }),
      );
    },
  );

  it('of a contact is apart from the others', async () => {
    await using world = await startTenants();
    const { memory, root } = await world.tenants.create('acme');
    const [anna, ben] = [memory.forContact('anna'), memory.forContact('../../ben')];
    await anna.write({ text: 'Anna.', title: 'note' });
    await ben.write({ text: 'Ben.' });
    expect((await anna.list()).map((entry) => entry.path)).toEqual(['memory/note.md']);
    await expect(ben.get('memory/note.md')).rejects.toThrow(code('not_found'));
    await expect(memory.get('memory/note.md')).rejects.toThrow(code('not_found'));
    expect((await readdir(join(root, 'contacts'))).every((name) => /^[0-9a-f]{32}$/u.test(name))).toBe(true);
  });

  it('is not written outside through a link that the tenant put in its way', async () => {
    await using world = await startTenants();
    const { memory, root } = await world.tenants.create('acme');
    await mkdir(join(world.dataDir, 'outside'));
    await symlink(join(world.dataDir, 'outside'), join(root, 'contacts', deriveSessionId('x', 'y', 'z')));
    await symlink(join(world.dataDir, 'outside'), join(root, 'memory', 'out'));
    const { files } = await world.tenants.open('acme');
    await expect(files.writeText('memory/out/a.md', 'x')).rejects.toThrow(code('invalid_request'));
    expect((await memory.list()).map((entry) => entry.path)).toEqual(['MEMORY.md']);
    expect(await readdir(join(world.dataDir, 'outside'))).toEqual([]);
  });

  it('ends at the quota, by whichever way it is written; making it smaller always works', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('MEMORY.md', 'x'.repeat(500));
    await scope.updateSettings({ limits: { memoryBytes: 1000 } });
    expect(await scope.memory.usedBytes()).toBe(500);
    await scope.memory.forContact('anna').write({ text: 'y'.repeat(300) });
    const quota = code('memory_quota');
    await expect(scope.memory.write({ text: 'z'.repeat(300) })).rejects.toThrow(quota);
    await expect(scope.memory.forContact('ben').write({ text: 'z'.repeat(300), title: 'note' })).rejects.toThrow(quota);
    await expect(scope.files.writeText('memory/a.md', 'z'.repeat(300))).rejects.toThrow(quota);
    await expect(scope.files.writeText('MEMORY.md', 'z'.repeat(800))).rejects.toThrow(quota);
    await scope.files.writeText('SOUL.md', 'z'.repeat(5000));
    await scope.files.writeText('MEMORY.md', 'x'.repeat(400));
    await scope.memory.write({ text: 'z'.repeat(100) });
    await scope.updateSettings({ limits: null });
    await scope.memory.write({ text: 'z'.repeat(3000) });
  });
});

describe('uploads', () => {
  it('are kept with name, type, size, content and text', async () => {
    await using world = await startTenants();
    const { uploads, root } = await world.tenants.create('acme');
    const bytes = Buffer.from('%PDF-1.7 …');
    const ref = await uploads.save({ name: '../../etc/passwd', type: 'application/pdf', bytes, text: 'read out' });
    expect(ref).toEqual({
      id: expect.stringMatching(/^u_[0-9a-f]{32}$/u),
      name: '../../etc/passwd',
      type: 'application/pdf',
      size: bytes.length,
    });
    expect(await uploads.find(ref.id)).toEqual(ref);
    expect((await uploads.bytes(ref.id)).equals(bytes)).toBe(true);
    expect(await uploads.text(ref.id)).toBe('read out');
    const image = await uploads.save({ name: 'a.png', type: 'image/png', bytes });
    expect(await uploads.text(image.id)).toBeUndefined();
    expect((await readdir(join(root, 'uploads'))).toSorted()).toEqual([image.id, ref.id].toSorted());
  });

  it('are not found under any other id, nor in another tenant', async () => {
    await using world = await startTenants();
    const { uploads } = await world.tenants.create('acme');
    const other = await world.tenants.create('other');
    const ref = await uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.from('a'), text: 'a' });
    for (const id of ['', '..', `../uploads/${ref.id}`, ref.id.toUpperCase(), `u_${'0'.repeat(32)}`]) {
      expect(await uploads.find(id)).toBeUndefined();
      await expect(uploads.bytes(id)).rejects.toThrow(code('not_found'));
    }
    expect(await other.uploads.find(ref.id)).toBeUndefined();
  });

  it('that were cut off are swept', async () => {
    await using world = await startTenants();
    const { uploads, root } = await world.tenants.create('acme');
    const left = join(root, 'uploads', '.tmp-left');
    await mkdir(left);
    await writeFile(join(left, 'content'), 'half');
    await uploads.sweep();
    expect(await readdir(join(root, 'uploads'))).toEqual(['.tmp-left']);
    const hourAgo = new Date(Date.now() - 3_600_000);
    await utimes(left, hourAgo, hourAgo);
    await uploads.sweep();
    expect(await readdir(join(root, 'uploads'))).toEqual([]);
  });
});

describe('rebuilding the index', () => {
  it('finds in the files all that was ever indexed, and reports what differed', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const ids = ['a', 'b', 'c'].map((sender) => deriveSessionId('cs', 'web', sender));
    const models = [{ model: 'demo/demo', calls: 1, inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, costUsd: null }];
    for (const id of ids) {
      const session = newSession(id, { turns: [turnRecord(`t-${id}`, models)] });
      await scope.sessions.appendHistory(id, [{ kind: 'turn', turn: turnRecord(`h-${id}`, models) }]);
      await scope.sessions.publish(session);
    }
    const first = await scope.reindex();
    expect(first).toMatchObject({ sessions: { added: 3 }, turns: { added: 6 } });
    expect(await scope.reindex()).toMatchObject({
      sessions: { added: 0, changed: 0, removed: 0 },
      turns: { added: 0, changed: 0, removed: 0 },
    });
    const usage = await scope.index.usage({});
    expect(await scope.removeSession(ids[0] ?? '')).toBe(true);
    expect(await scope.removeSession(ids[0] ?? '')).toBe(false);
    expect((await scope.index.listSessions({ limit: 10 })).items).toHaveLength(2);
    expect(await scope.index.usage({})).toEqual(usage);
    expect(await scope.reindex()).toMatchObject({ sessions: { added: 0, changed: 0, removed: 0 } });
    expect(await scope.index.usage({})).toEqual(usage);
  });

  it('leaves out a session whose file is damaged beyond repair, and goes on', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const [good, bad] = [deriveSessionId('cs', 'web', 'good'), deriveSessionId('cs', 'web', 'bad')];
    for (const id of [good, bad]) await scope.sessions.publish(newSession(id));
    await writeFile(join(scope.root, 'sessions', '.revisions', bad, '0000000001.json'), '{');
    const reader = await (await world.another()).open('acme');
    expect(await reader.reindex()).toMatchObject({ sessions: { added: 1 } });
    expect((await reader.index.listSessions({ limit: 10 })).items.map((item) => item.id)).toEqual([good]);
    expect(await readFile(join(scope.root, 'sessions', '.revisions', bad, '0000000001.json.broken'), 'utf8')).toBe('{');
  });
});
