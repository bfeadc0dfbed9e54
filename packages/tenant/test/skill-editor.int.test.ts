import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import type { TenantScope } from '../src/tenant-scope.ts';
import { startTenants } from './support.ts';

const KILLS = 15;
const code = (name: string): object => expect.objectContaining({ code: name });
const skillText = (name: string, body = 'Do it.'): string => `---\nname: ${name}\ndescription: What ${name} is for\n---\n${body}\n`;
const file = async (scope: TenantScope, path: string): Promise<string> => (await scope.files.readText(`skills/${path}`)).text;

describe('a skill that is changed', () => {
  it('is in the list and in the index at once', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const names = async (): Promise<string[][]> => [
      (await scope.skills.list()).map(({ name }) => name),
      (await scope.index.listSkills()).map(({ name }) => name),
    ];
    await scope.skillEditor.create('refunds', skillText('refunds'));
    expect(await names()).toEqual([
      ['refunds', 'take-notes'],
      ['refunds', 'take-notes'],
    ]);
    await scope.skillEditor.update('refunds', (text) => text.replace('What refunds is for', 'Money back'));
    expect((await scope.index.listSkills())[0]).toMatchObject({ description: 'Money back' });
    await scope.skillEditor.remove('refunds');
    expect(await names()).toEqual([['take-notes'], ['take-notes']]);
  });

  it('keeps what each change replaced, newest first, and brings it back', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const { skillEditor } = scope;
    await skillEditor.create('a', skillText('a', 'one'));
    await skillEditor.update('a', () => skillText('a', 'two'));
    await skillEditor.update('a', () => skillText('a', 'three'));
    const [newest, oldest] = await skillEditor.versions('a');
    expect(newest).toMatchObject({ files: ['SKILL.md'], at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u) });
    await skillEditor.restore('a', oldest?.id ?? '');
    expect(await file(scope, 'a/SKILL.md')).toBe(skillText('a', 'one'));
    await skillEditor.restore('a', (await skillEditor.versions('a'))[0]?.id ?? '');
    expect(await file(scope, 'a/SKILL.md')).toBe(skillText('a', 'three'));
    await expect(skillEditor.restore('a', '2020-01-01T00-00-00-000')).rejects.toThrow(code('not_found'));
    await expect(skillEditor.restore('a', '../../a')).rejects.toThrow(code('not_found'));
  });

  it('comes back whole after it was deleted, bytes and all', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.skillEditor.create('a', skillText('a'));
    await scope.skillEditor.writeFile('a', 'references/prices.md', 'tea: 2');
    const bytes = Buffer.from([0, 1, 255]);
    await writeFile(join(scope.root, 'skills/a/logo.png'), bytes);
    const version = await scope.skillEditor.remove('a');
    expect(await scope.files.stat('skills/a')).toBeUndefined();
    expect((await scope.skillEditor.versions('a')).map(({ id, files }) => [id, files])).toEqual([
      [version, ['logo.png', 'references/prices.md', 'SKILL.md']],
    ]);
    await scope.skillEditor.restore('a', version);
    expect((await scope.skills.load('a')).files).toEqual(['logo.png', 'references/prices.md']);
    expect(await readFile(join(scope.root, 'skills/a/logo.png'))).toEqual(bytes);
  });

  it('can be brought back over another one of its name, which becomes a version', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.skillEditor.create('a', skillText('a', 'first'));
    await scope.skillEditor.writeFile('a', 'x.md', 'first x');
    const version = await scope.skillEditor.remove('a');
    await scope.skillEditor.create('a', skillText('a', 'second'));
    await scope.skillEditor.writeFile('a', 'y.md', 'second y');
    expect(await scope.skillEditor.restore('a', version)).toEqual(['x.md', 'SKILL.md']);
    expect(await Promise.all(['SKILL.md', 'x.md', 'y.md'].map(async (name) => file(scope, `a/${name}`)))).toEqual([
      skillText('a', 'first'),
      'first x',
      'second y',
    ]);
    expect((await scope.skillEditor.versions('a'))[0]).toMatchObject({ files: ['SKILL.md'] });
  });

  it('keeps files that were replaced or removed', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const { skillEditor } = scope;
    await skillEditor.create('a', skillText('a'));
    expect(await skillEditor.writeFile('a', 'r/x.md', 'one')).toMatchObject({ created: true });
    expect(await skillEditor.versions('a')).toEqual([]);
    expect(await skillEditor.writeFile('a', 'r/x.md', 'two')).toMatchObject({ created: false });
    await skillEditor.removeFile('a', 'r/x.md');
    const [removed, replaced] = await skillEditor.versions('a');
    await skillEditor.restore('a', replaced?.id ?? '');
    expect(await file(scope, 'a/r/x.md')).toBe('one');
    await skillEditor.restore('a', removed?.id ?? '');
    expect(await file(scope, 'a/r/x.md')).toBe('two');
    await skillEditor.remove('a');
    await expect(skillEditor.restore('a', removed?.id ?? '')).rejects.toThrow('is no whole skill');
  });

  it('keeps the last 20 versions and no more, of 200 skills and no more', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.skillEditor.create('a', skillText('a', '0'));
    for (let round = 1; round <= 25; round += 1) await scope.skillEditor.update('a', () => skillText('a', String(round)));
    const versions = await scope.skillEditor.versions('a');
    expect(versions).toHaveLength(20);
    expect(await file(scope, `.versions/a/${versions[0]?.id ?? ''}/SKILL.md`)).toBe(skillText('a', '24'));
    for (let index = 0; index < 205; index += 1) {
      const folder = join(scope.root, 'skills', '.versions', `gone-${String(index)}`);
      await mkdir(folder);
      await utimes(folder, index, index);
    }
    await scope.skillEditor.update('a', () => skillText('a', 'last'));
    const kept = await readdir(join(scope.root, 'skills', '.versions'));
    expect(kept).toHaveLength(200);
    expect(kept).toContain('a');
    expect(kept).not.toContain('gone-0');
  });
});

describe('a change of a skill', () => {
  it.each([
    ['no front matter', 'Do it.', /name must be lower-case[\s\S]*description must be text/u],
    ['another name', skillText('b'), /the name is b, the folder is a/u],
    [
      'a bad name',
      '---\nname: A B\ndescription: x\n---\n',
      /name must be lower-case letters a-z, digits and single inner hyphens, at most 64/u,
    ],
    ['no description', '---\nname: a\n---\n', /description must be text of 1 to 1024 characters/u],
    ['a blank description', '---\nname: a\ndescription: "  "\n---\n', /description must be text of 1/u],
    ['a long description', `---\nname: a\ndescription: ${'x'.repeat(1025)}\n---\n`, /description must be text of 1 to 1024/u],
    [
      'a long compatibility',
      `---\nname: a\ndescription: x\ncompatibility: ${'x'.repeat(501)}\n---\n`,
      /compatibility must be text of 1 to 500/u,
    ],
    ['metadata that is no map', '---\nname: a\ndescription: x\nmetadata: [1]\n---\n', /metadata must be a map/u],
    ['tools that are no names', '---\nname: a\ndescription: x\nallowed-tools: 7\n---\n', /allowed-tools must be names of tools/u],
    ['a trigger that is no text', '---\nname: a\ndescription: x\ntrigger: [a]\n---\n', /trigger must be text/u],
    ['YAML that is none', '---\nname: a\ndescription: do: it: now\n---\n', /is not YAML/u],
    ['a program', '---js\n({ name: "a", description: "x" })\n---\n', /must open with a line of just ---/u],
    ['front matter without an end', '---\nname: a\ndescription: x\n', /is not closed/u],
  ])('with %s is refused, and nothing is changed', async (_, text, reason) => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await expect(scope.skillEditor.create('a', text)).rejects.toThrow(reason);
    expect(await readdir(join(scope.root, 'skills'))).toEqual(['take-notes']);
    await scope.skillEditor.create('a', skillText('a'));
    await expect(scope.skillEditor.update('a', () => text)).rejects.toThrow(code('invalid_request'));
    expect(await file(scope, 'a/SKILL.md')).toBe(skillText('a'));
    expect(await scope.skillEditor.versions('a')).toEqual([]);
  });

  it('takes everything that Agent Skills allow, and reports which fields are unused', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const text =
      '---\nname: a-1\ndescription: x\nlicense: MIT\ncompatibility: Needs git\nallowed-tools: [read, bash]\nmetadata:\n  trigger: do a\n  version: "1.0"\ntriger: oops\n---\n';
    expect(await scope.skillEditor.create('a-1', text)).toMatchObject({ skill: { trigger: 'do a' }, unknownFields: ['triger'] });
  });

  it.each(['A', 'a--b', '-a', 'a-', 'ä', '', '..', 'a/b', '.versions', 'x'.repeat(65)])('of a skill called %j is refused', async (name) => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const { skillEditor } = scope;
    const attempts = [
      async () => skillEditor.create(name, skillText(name)),
      async () => skillEditor.update(name, (text) => text),
      async () => skillEditor.remove(name),
      async () => skillEditor.writeFile(name, 'x.md', 'x'),
      async () => skillEditor.removeFile(name, 'x.md'),
      async () => skillEditor.versions(name),
      async () => skillEditor.restore(name, '2026-01-01T00-00-00-000'),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ status: expect.any(Number) });
    expect(await readdir(join(scope.root, 'skills'))).toEqual(['take-notes']);
  });

  it('makes no second skill of a name, nor one beside a file of that name', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await expect(scope.skillEditor.create('take-notes', skillText('take-notes'))).rejects.toThrow(code('conflict'));
    await scope.files.writeText('skills/plain', 'x');
    await expect(scope.skillEditor.create('plain', skillText('plain'))).rejects.toThrow(code('conflict'));
    await scope.files.writeText('skills/Loud/x.md', 'x');
    await expect(scope.skillEditor.create('loud', skillText('loud'))).rejects.toThrow('differs only in case');
  });

  it('goes through no link, neither to the skill nor to its versions', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const outside = join(world.dataDir, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'SKILL.md'), skillText('linked'));
    await symlink(outside, join(scope.root, 'skills', 'linked'));
    await expect(scope.skillEditor.update('linked', () => skillText('linked', 'x'))).rejects.toThrow(code('invalid_request'));
    await expect(scope.skillEditor.writeFile('linked', 'x.md', 'x')).rejects.toThrow(code('invalid_request'));
    await expect(scope.skillEditor.remove('linked')).rejects.toThrow(code('not_found'));
    await symlink(outside, join(scope.root, 'skills', '.versions'));
    await expect(scope.skillEditor.update('take-notes', (text) => `${text}\n`)).rejects.toThrow(code('invalid_request'));
    expect(await readdir(outside)).toEqual(['SKILL.md']);
  });

  it('leaves SKILL.md alone where files of a skill are meant, and has room for 200 of them', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.skillEditor.create('a', skillText('a'));
    for (const name of ['SKILL.md', 'skill.MD']) {
      await expect(scope.skillEditor.writeFile('a', name, 'x')).rejects.toThrow('is the skill itself');
      await expect(scope.skillEditor.removeFile('a', name)).rejects.toThrow('is the skill itself');
    }
    await expect(scope.skillEditor.writeFile('missing', 'x.md', 'x')).rejects.toThrow(code('not_found'));
    for (let index = 1; index < 200; index += 1) await writeFile(join(scope.root, 'skills', 'a', `${String(index)}.md`), 'x');
    await expect(scope.skillEditor.writeFile('a', 'more.md', 'x')).rejects.toThrow(code('too_large'));
    await scope.skillEditor.writeFile('a', '1.md', 'y');
  });
});

async function runUntilKilled(root: string, afterMs: number): Promise<void> {
  const changer = fileURLToPath(new URL('./skill-changer.ts', import.meta.url));
  const args = ['--conditions=@concierge/source', '--no-warnings', changer, root, String(afterMs)];
  const [, signal] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'close');
  expect(signal).toBe('SIGKILL');
}

describe('an agent that is killed while it changes skills', () => {
  it(`leaves each of them whole or gone, ${String(KILLS)} times`, async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    for (let kill = 0; kill < KILLS; kill += 1) {
      await runUntilKilled(scope.root, (kill * 7) % 40);
      const { valid, invalid } = await scope.skills.scan();
      expect(invalid).toEqual([]);
      for (const { description } of valid.filter(({ name }) => name === 'busy'))
        expect(await readLines(scope, 'busy/SKILL.md')).toEqual(new Set([description.replace('Round', 'round')]));
      for (const { id, files } of await scope.skillEditor.versions('busy')) {
        for (const name of files) expect((await readLines(scope, `.versions/busy/${id}/${name}`)).size).toBe(1);
      }
    }
    await scope.files.sweep(-60_000);
    expect((await readdir(join(scope.root, 'skills'))).filter((name) => name.startsWith('.tmp-'))).toEqual([]);
  });
});

/** The different lines of a file whose lines are all the same when it is whole. */
async function readLines(scope: TenantScope, path: string): Promise<Set<string>> {
  const text = await file(scope, path);
  const lines = text.replace(/^---\n[\s\S]*?\n---\n/u, '').split('\n');
  expect(lines).toHaveLength(2001);
  return new Set(lines.slice(0, -1));
}
