import { execFile } from 'node:child_process';
import { chown, link, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { TenantFiles, toEtag } from '../src/files/tenant-files.ts';
import { temporaryFolder } from './support.ts';

const run = promisify(execFile);
const code = (name: string): object => expect.objectContaining({ code: name });

describe('the files of a tenant', () => {
  it('are written whole, making folders, and read back with size and tag', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    const written = await files.writeText('templates/letters/welcome.md', 'Grüße');
    expect(written).toEqual({ etag: toEtag('Grüße'), created: true });
    expect(await files.readText('templates/letters/welcome.md')).toMatchObject({ text: 'Grüße', etag: written.etag, size: 7 });
    expect(await files.writeText('templates/letters/welcome.md', 'Hi')).toMatchObject({ created: false });
    expect((await files.readBytes('templates/letters/welcome.md')).bytes.toString()).toBe('Hi');
  });

  it('are not found, and not made, where private parts lie', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    await mkdir(join(folder.path, 'sessions'));
    await writeFile(join(folder.path, 'sessions', 'x.json'), '{}');
    await writeFile(join(folder.path, 'tenant.json'), '{}');
    for (const path of ['sessions/x.json', 'tenant.json', 'SESSIONS/x.json', 'keys/k.json', 'contacts/a/USER.md']) {
      await expect(files.readText(path)).rejects.toThrow(code('not_found'));
      await expect(files.remove(path)).rejects.toThrow(code('not_found'));
      await expect(files.writeText(path, 'x')).rejects.toThrow(code('invalid_request'));
      expect(await files.stat(path)).toBeUndefined();
    }
    await expect(files.list('sessions')).rejects.toThrow(code('not_found'));
    await expect(files.removeFolder('sessions')).rejects.toThrow(code('not_found'));
    expect(await files.list('', { recursive: true })).toEqual([]);
    expect(await readFile(join(folder.path, 'sessions', 'x.json'), 'utf8')).toBe('{}');
  });

  it('are refused when they are links, pipes, sockets or folders', async () => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, 'tenant');
    await mkdir(join(root, 'own'), { recursive: true });
    await writeFile(join(folder.path, 'secret.md'), 'secret');
    await symlink('../secret.md', join(root, 'symbolic.md'));
    await symlink('..', join(root, 'up'));
    await link(join(folder.path, 'secret.md'), join(root, 'hard.md'));
    await run('mkfifo', [join(root, 'pipe.md')]);
    const server = createServer().listen(join(root, 'socket.md'));
    const files = new TenantFiles({ root });
    try {
      for (const path of ['symbolic.md', 'hard.md', 'pipe.md', 'socket.md', 'own', 'up/secret.md']) {
        await expect(files.readText(path)).rejects.toThrow(code('invalid_request'));
        await expect(files.writeText(path, 'overwritten')).rejects.toThrow(code('invalid_request'));
        await expect(files.appendText(path, 'more')).rejects.toThrow(code('invalid_request'));
      }
      expect(await files.list('', { recursive: true })).toEqual([expect.objectContaining({ path: 'own', kind: 'folder' })]);
      await files.remove('symbolic.md');
      await files.remove('hard.md');
      expect(await readFile(join(folder.path, 'secret.md'), 'utf8')).toBe('secret');
    } finally {
      server.close();
    }
  });

  it('belong to whom the folder belongs to, also when root writes them', async () => {
    await using folder = await temporaryFolder();
    if (process.getuid?.() === 0) await chown(folder.path, 4711, 4712);
    const files = new TenantFiles({ root: folder.path });
    await files.writeText('memory/notes/a.md', 'a');
    await files.writeText('memory/notes/a.md', 'b');
    await files.appendText('memory/notes/b.md', 'b');
    const { uid, gid } = await stat(folder.path);
    for (const path of ['memory', 'memory/notes', 'memory/notes/a.md', 'memory/notes/b.md']) {
      expect(await stat(join(folder.path, path))).toMatchObject({ uid, gid });
    }
  });

  it('keep to If-Match and If-None-Match', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    await expect(files.writeText('a.md', 'one', { ifMatch: '*' })).rejects.toThrow(code('precondition_failed'));
    const { etag } = await files.writeText('a.md', 'one', { ifNoneMatch: '*' });
    await expect(files.writeText('a.md', 'two', { ifNoneMatch: '*' })).rejects.toThrow(code('precondition_failed'));
    await expect(files.writeText('a.md', 'two', { ifMatch: toEtag('other') })).rejects.toThrow(code('precondition_failed'));
    await expect(files.remove('a.md', { ifMatch: toEtag('other') })).rejects.toThrow(code('precondition_failed'));
    const next = await files.writeText('a.md', 'two', { ifMatch: etag });
    await expect(files.writeText('a.md', 'three', { ifMatch: etag })).rejects.toThrow(code('precondition_failed'));
    await files.remove('a.md', { ifMatch: next.etag });
    await expect(files.readText('a.md')).rejects.toThrow(code('not_found'));
    await expect(files.remove('a.md')).rejects.toThrow(code('not_found'));
  });

  it('let one of several writers with the same tag win', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    const { etag } = await files.writeText('a.md', 'base');
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) => files.writeText('a.md', String(index), { ifMatch: etag })),
    );
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
  });

  it('are always whole for readers, however often they are replaced', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    const contents = ['a'.repeat(50_000), 'b'.repeat(70_000)];
    await files.writeText('a.md', contents[0] ?? '');
    const writing = (async () => {
      for (let round = 0; round < 100; round += 1) await files.writeText('a.md', contents[round % 2] ?? '');
    })();
    for (let round = 0; round < 300; round += 1) expect(contents).toContain((await files.readText('a.md')).text);
    await writing;
  });

  it('are not made beside a name that differs only in case, file or folder', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    await files.writeText('memory/Notes.md', 'x');
    await expect(files.writeText('memory/notes.md', 'y')).rejects.toThrow(code('invalid_request'));
    await expect(files.writeText('Memory/other.md', 'y')).rejects.toThrow(code('invalid_request'));
    await expect(files.appendText('memory/NOTES.md', 'y')).rejects.toThrow(code('invalid_request'));
    await files.writeText('memory/Notes.md', 'z');
  });

  it('are bounded in size, read and written', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    await files.writeText('a.md', 'x'.repeat(100));
    await expect(files.readText('a.md', { maxBytes: 99 })).rejects.toThrow(code('too_large'));
    expect((await files.readText('a.md', { maxBytes: 100 })).size).toBe(100);
    await expect(files.writeText('b.md', 'x'.repeat(limits.fileMaxBytes + 1))).rejects.toThrow(code('too_large'));
  });

  it('are text only when they are UTF-8', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    await writeFile(join(folder.path, 'image.png'), Buffer.from([0x89, 0x50, 0xff, 0x00]));
    await expect(files.readText('image.png')).rejects.toThrow(code('unsupported_media_type'));
    expect((await files.readBytes('image.png')).size).toBe(4);
    await files.writeText('bom.md', '\uFEFFtext');
    expect((await files.readText('bom.md')).text).toBe('\uFEFFtext');
  });

  it('are listed by path, folders before what is in them, up to a limit', async () => {
    await using folder = await temporaryFolder();
    const files = new TenantFiles({ root: folder.path });
    for (const path of ['b.md', 'skills/x/SKILL.md', 'skills/x/data/a.csv', 'a.md']) await files.writeText(path, 'x');
    await writeFile(join(folder.path, 'skills', '.tmp-left'), '');
    const paths = (entries: readonly { readonly path: string }[]): string[] => entries.map((entry) => entry.path);
    expect(paths(await files.list())).toEqual(['a.md', 'b.md', 'skills']);
    expect(paths(await files.list('skills', { recursive: true }))).toEqual([
      'skills/x',
      'skills/x/SKILL.md',
      'skills/x/data',
      'skills/x/data/a.csv',
    ]);
    expect(paths(await files.list('', { recursive: true, limit: 4 }))).toEqual(['a.md', 'b.md', 'skills', 'skills/x']);
    await expect(files.list('missing')).rejects.toThrow(code('not_found'));
    expect(await files.sweep(-60_000)).toBe(1);
  });

  it('are removed with their folder, links in it without what they point to', async () => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, 'tenant');
    const files = new TenantFiles({ root });
    await mkdir(join(root), { recursive: true });
    await files.writeText('skills/x/deep/a.md', 'x');
    await mkdir(join(folder.path, 'outside'));
    await writeFile(join(folder.path, 'outside', 'kept.md'), 'kept');
    await symlink(join(folder.path, 'outside'), join(root, 'skills', 'x', 'out'));
    await files.removeFolder('skills/x');
    expect(await files.stat('skills/x')).toBeUndefined();
    expect(await readFile(join(folder.path, 'outside', 'kept.md'), 'utf8')).toBe('kept');
    await expect(files.removeFolder('skills/x')).rejects.toThrow(code('not_found'));
  });

  it('lose nothing of what several append at once', async () => {
    await using folder = await temporaryFolder();
    const [one, other] = [new TenantFiles({ root: folder.path }), new TenantFiles({ root: folder.path })];
    const lines = Array.from({ length: 100 }, (_, index) => `line ${String(index)}\n`);
    await one.appendText('log.md', '', '# Log\n');
    await Promise.all(lines.map(async (line, index) => (index % 2 === 0 ? one : other).appendText('log.md', line, '# Log\n')));
    const text = (await one.readText('log.md')).text;
    expect(text.split('\n').toSorted()).toEqual(['# Log', '', ...lines.map((line) => line.trim())].toSorted());
  });
});
