import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { link, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { AppError, type TenantSettings } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { formatSettings } from '../src/settings/settings-files.ts';
import { Settings, type SettingsPatch } from '../src/settings/settings.ts';
import { silentLog, temporaryFolder, until, type Folder } from './support.ts';

const writerPath = fileURLToPath(new URL('./settings-writer.ts', import.meta.url));
const code = (name: string): object => expect.objectContaining({ code: name });
const settingsIn = (root: string): Settings => new Settings({ tenantId: 'acme', root, folders: new FolderSync(), log: silentLog });
const inForce = async (root: string): Promise<{ settings: TenantSettings; problem: string | null }> => {
  const settings = settingsIn(root);
  return { settings: await settings.current(), problem: settings.problem };
};

/** A tenant's folder with nothing in it but its settings, kept once. */
async function tenantFolder(settings: TenantSettings = { plan: 'standard' }): Promise<Folder & { readonly file: string }> {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'tenant.json');
  await writeFile(file, formatSettings(settings), { mode: 0o600 });
  await settingsIn(folder.path).current();
  return { ...folder, file };
}

interface Writer {
  readonly child: ChildProcess;
  /** What it acknowledged before its end. */
  readonly lines: Promise<string[]>;
}

function startWriter(...args: readonly string[]): Writer {
  const child = spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', writerPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { child, lines: once(child, 'close').then(() => lines) };
}

async function runWriter(...args: readonly string[]): Promise<string[]> {
  return startWriter(...args).lines;
}

async function isStopped(pid: number | undefined): Promise<boolean> {
  const text = await readFile(`/proc/${String(pid)}/stat`, 'utf8').catch(() => '');
  return text.replace(/^.*\)/u, '').startsWith(' T ');
}

/** An update that waits for another process longer than a service would: that may stand still once it is woken. */
async function updatePatiently(root: string, patch: SettingsPatch): Promise<TenantSettings> {
  for (;;) {
    try {
      return await settingsIn(root).update(patch);
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'conflict')) throw error;
    }
  }
}

async function isAtRest(root: string): Promise<boolean> {
  return !(await readdir(join(root, 'settings'))).includes('update.json');
}

/** Longer than a page, so that a reader can meet a half-written one. */
const long: TenantSettings = {
  plan: 'standard',
  agents: { admin: { tools: Array.from({ length: 900 }, (_, index) => `a-tool-with-number-${String(index)}`) } },
};
const steps = ['after-announce', 'after-keep', 'before-cut', 'after-write', 'after-link'] as const;

describe('an update of the settings', () => {
  it('writes into the file that is there, and puts nothing beside it', async () => {
    await using tenant = await tenantFolder();
    const { ino } = await stat(tenant.file);
    const settings = settingsIn(tenant.path);
    for (const name of ['a name', 'b', 'a longer name than before', null]) await settings.update({ name, suspended: true });
    expect(await readFile(tenant.file, 'utf8')).toBe(formatSettings({ plan: 'standard', suspended: true }));
    expect((await stat(tenant.file)).ino).toBe(ino);
    expect((await readdir(tenant.path)).toSorted()).toEqual(['settings', 'tenant.json']);
    expect((await readdir(join(tenant.path, 'settings'))).toSorted()).toEqual(['last-good.json', 'lock.db']);
  });

  it.each([
    { step: 'after-announce', left: 'old' },
    { step: 'after-keep', left: 'old' },
    { step: 'before-cut', left: 'torn' },
    { step: 'after-write', left: 'new' },
  ] as const)('that is killed $step, with the file $left, is carried out by the next reader', async ({ step, left }) => {
    await using tenant = await tenantFolder({ plan: 'standard', name: 'a name', agents: { cs: { maxTurns: 100 } } });
    const after: TenantSettings = { plan: 'standard', name: 'a name', agents: { cs: { maxTurns: 1 } } };
    const [oldText, newText] = [await readFile(tenant.file, 'utf8'), formatSettings(after)];
    const texts = { old: oldText, torn: newText + oldText.slice(newText.length), new: newText };
    expect(() => void JSON.parse(texts.torn)).toThrow(SyntaxError);
    expect(await runWriter(tenant.path, 'cs', '1', `settings.${step}:kill`)).toEqual([]);
    expect(await readFile(tenant.file, 'utf8')).toBe(texts[left]);
    expect(await inForce(tenant.path)).toEqual({ settings: after, problem: null });
    await until(async () => isAtRest(tenant.path));
    expect(await readFile(tenant.file, 'utf8')).toBe(newText);
    expect(await inForce(tenant.path)).toEqual({ settings: after, problem: null });
  });

  it('that takes its time in the middle is in force already, and is not finished by others meanwhile', async () => {
    await using tenant = await tenantFolder({ plan: 'standard', agents: { cs: { maxTurns: 100 } } });
    const writer = startWriter(tenant.path, 'cs', '1', 'settings.before-cut:stop');
    try {
      await until(async () => isStopped(writer.child.pid));
      const torn = await readFile(tenant.file, 'utf8');
      for (let reader = 0; reader < 3; reader += 1)
        expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'standard', agents: { cs: { maxTurns: 1 } } }, problem: null });
      const update = updatePatiently(tenant.path, { name: 'Acme' });
      expect(await readFile(tenant.file, 'utf8')).toBe(torn);
      writer.child.kill('SIGCONT');
      expect(await update).toEqual({ plan: 'standard', name: 'Acme', agents: { cs: { maxTurns: 1 } } });
      expect(await writer.lines).toEqual(['1']);
      expect(await inForce(tenant.path)).toEqual({ settings: await update, problem: null });
    } finally {
      writer.child.kill('SIGKILL');
    }
  });

  it.each(steps)('goes on top of one that was killed %s, also where there was no file', async (step) => {
    await using tenant = await tenantFolder();
    if (step === 'after-link') await rm(tenant.file);
    // The first pass of a tenant without a file is the one that makes it.
    await runWriter(tenant.path, 'cs', '1', `settings.${step}:kill`);
    const settings = await settingsIn(tenant.path).update({ name: 'Acme' });
    const cut = step === 'after-link' ? {} : { agents: { cs: { maxTurns: 1 } } };
    expect(settings).toEqual({ plan: 'standard', name: 'Acme', ...cut });
    expect(await readFile(tenant.file, 'utf8')).toBe(formatSettings(settings));
    expect((await stat(tenant.file)).nlink).toBe(1);
    expect((await readdir(tenant.path)).toSorted()).toEqual(['settings', 'tenant.json']);
  });

  it('that was killed is dropped when the file has been edited since', async () => {
    for (const [text, expected] of [
      ['{"plan":"preview"}', { settings: { plan: 'preview' }, problem: null }],
      ['{"plan":', { settings: { plan: 'standard', agents: { cs: { maxTurns: 1 } } }, problem: expect.any(String) }],
    ] as const) {
      await using tenant = await tenantFolder();
      await runWriter(tenant.path, 'cs', '1', 'settings.before-cut:kill');
      await writeFile(tenant.file, text);
      expect(await inForce(tenant.path)).toEqual(expected);
      await until(async () => isAtRest(tenant.path));
      expect(await inForce(tenant.path)).toEqual(expected);
      expect(await readFile(tenant.file, 'utf8')).toBe(text);
    }
  });

  it('is lost to no other one, of whatever process, and no reader ever meets half of one', async () => {
    await using tenant = await tenantFolder(long);
    let isDone = false;
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      while (!isDone) {
        const { settings, problem } = await inForce(tenant.path);
        const { admin, ...others } = settings.agents ?? {};
        const isWhole = admin?.tools?.length === 900 && Object.values(others).every(({ maxTurns = 0 }) => maxTurns >= 1 && maxTurns <= 40);
        if (problem !== null || !isWhole) seen.push(problem ?? JSON.stringify(settings));
      }
    };
    const readers = [read(), read(), read()];
    const acknowledged = await Promise.all(['a', 'b', 'c'].map(async (name) => runWriter(tenant.path, name, '40')));
    isDone = true;
    await Promise.all(readers);
    expect(seen).toEqual([]);
    expect(acknowledged.map((lines) => lines.length)).toEqual([40, 40, 40]);
    const agents = { ...long.agents, a: { maxTurns: 40 }, b: { maxTurns: 40 }, c: { maxTurns: 40 } };
    expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'standard', agents }, problem: null });
  });
});

describe('a tenant.json', () => {
  it('that was broken by hand is reported and stays as it is, for every reader', async () => {
    await using tenant = await tenantFolder({ plan: 'standard', suspended: true });
    await writeFile(tenant.file, '{"plan": "stand');
    for (let reader = 0; reader < 3; reader += 1)
      expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'standard', suspended: true }, problem: expect.any(String) });
    expect(await readFile(tenant.file, 'utf8')).toBe('{"plan": "stand');
    expect(await settingsIn(tenant.path).update({ name: 'Acme' })).toEqual({ plan: 'standard', suspended: true, name: 'Acme' });
    expect(await readFile(tenant.file, 'utf8')).toContain('Acme');
  });

  it('that is missing is made again, so that no other process can', async () => {
    await using tenant = await tenantFolder({ plan: 'standard', suspended: true });
    await rm(tenant.file);
    expect((await settingsIn(tenant.path).current()).suspended).toBe(true);
    expect(await readFile(tenant.file, 'utf8')).toBe(formatSettings({ plan: 'standard', suspended: true }));
    expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'standard', suspended: true }, problem: null });
  });

  it('that is a link is neither followed nor written to', async () => {
    await using tenant = await tenantFolder({ plan: 'preview' });
    const own = join(tenant.path, 'own.json');
    await writeFile(own, '{"plan":"standard"}');
    await rm(tenant.file);
    await symlink('own.json', tenant.file);
    expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'preview' }, problem: expect.stringContaining('is a link') });
    await expect(settingsIn(tenant.path).update({ name: 'Acme' })).rejects.toThrow(code('conflict'));
    await rm(tenant.file);
    await link(own, tenant.file);
    await expect(settingsIn(tenant.path).update({ name: 'Acme' })).rejects.toThrow(code('conflict'));
    expect(await readFile(own, 'utf8')).toBe('{"plan":"standard"}');
  });
});

describe('what keeps the settings', () => {
  it('takes over a last good file of earlier versions, once', async () => {
    await using folder = await temporaryFolder();
    const old = join(folder.path, 'tenant.last-good.json');
    await writeFile(join(folder.path, 'tenant.json'), '{');
    await writeFile(old, formatSettings({ plan: 'standard', suspended: true }));
    expect(await inForce(folder.path)).toEqual({ settings: { plan: 'standard', suspended: true }, problem: expect.any(String) });
    expect((await readdir(folder.path)).toSorted()).toEqual(['settings', 'tenant.json']);
    await writeFile(old, formatSettings({ plan: 'standard' }));
    expect((await inForce(folder.path)).settings).toEqual({ plan: 'standard', suspended: true });
  });

  it('does not look for it a second time where there was none', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'tenant.json'), '{');
    expect((await inForce(folder.path)).settings).toEqual({ plan: 'preview' });
    await writeFile(join(folder.path, 'tenant.last-good.json'), formatSettings({ plan: 'standard' }));
    expect((await inForce(folder.path)).settings).toEqual({ plan: 'preview' });
  });

  it('is not looked for behind a link', async () => {
    await using tenant = await tenantFolder({ plan: 'preview' });
    await rename(join(tenant.path, 'settings'), join(tenant.path, 'own'));
    await symlink('own', join(tenant.path, 'settings'));
    await writeFile(
      join(tenant.path, 'own', 'update.json'),
      JSON.stringify({ before: await readFile(tenant.file, 'latin1'), after: { plan: 'standard' } }),
    );
    expect(await inForce(tenant.path)).toEqual({ settings: { plan: 'preview' }, problem: null });
    await expect(settingsIn(tenant.path).update({ name: 'Acme' })).rejects.toThrow(code('conflict'));
  });

  it('does not bring a removed tenant back', async () => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, 'acme');
    await mkdir(root);
    const settings = settingsIn(root);
    await settings.update({ name: 'Acme' });
    await rm(root, { recursive: true });
    await expect(settings.update({ name: 'Acme again' })).rejects.toThrow(code('not_found'));
    // Nor does it go on with settings that it never had: a suspended one would be at work again.
    await expect(settings.current()).rejects.toThrow(code('not_found'));
    expect(await readdir(folder.path)).toEqual([]);
  });
});
