import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { claimDataFolder, loadSecrets, openDataFolder } from './data-folder.mjs';

describe('the data folder', () => {
  let folder;
  beforeEach(() => {
    folder = openDataFolder({ DATA_DIR: mkdtempSync(join(tmpdir(), 'concierge-data-')) });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('makes its secrets once, readable by its owner alone', () => {
    const first = loadSecrets(folder, {});
    expect(Buffer.from(first.SECRETS_KEY, 'base64url')).toHaveLength(32);
    expect(first.KEY_SECRET.length).toBeGreaterThanOrEqual(32);
    expect(statSync(join(folder, 'secrets.json')).mode % 0o1000).toBe(0o600);
    expect(loadSecrets(folder, {})).toEqual(first);
  });

  it('adds a secret that an earlier version did not have in one step, so that the others are never gone', () => {
    const file = join(folder, 'secrets.json');
    const { CONSOLE_SECRET, ...earlier } = loadSecrets(folder, {});
    const text = JSON.stringify(earlier);
    writeFileSync(file, text);
    const before = openSync(file);
    const later = loadSecrets(folder, {});
    // What was there is still whole when the other has its name.
    expect(readFileSync(before, 'utf8')).toBe(text);
    closeSync(before);
    expect(later).toMatchObject(earlier);
    expect(later.CONSOLE_SECRET).not.toBe(CONSOLE_SECRET);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(later);
    expect(readdirSync(folder).filter((name) => name.startsWith('secrets'))).toEqual(['secrets.json']);
  });

  it('takes secrets from the environment when they stand there', () => {
    expect(loadSecrets(folder, { KEY_SECRET: 'from outside' }).KEY_SECRET).toBe('from outside');
    expect(Object.keys(loadSecrets(folder, { KEY_SECRET_FILE: '/run/secrets/key' }))).toEqual(['SECRETS_KEY', 'CONSOLE_SECRET']);
  });

  it('names a file of secrets that cannot be read, and shows nothing of it', () => {
    writeFileSync(join(folder, 'secrets.json'), '{ "KEY_SECRET": zyxwvutsrqponm }');
    expect(() => loadSecrets(folder, {})).toThrow(/secrets\.json cannot be read: it is no JSON$/u);
  });

  it('does not count what a killed start left behind as running', () => {
    writeFileSync(join(folder, 'run.json'), JSON.stringify({ pid: 2 ** 22 - 1 }));
    const release = claimDataFolder(folder);
    expect(statSync(join(folder, 'run.json')).isFile()).toBe(true);
    release();
    expect(() => statSync(join(folder, 'run.json'))).toThrow('ENOENT');
  });

  it.each(['', '{"pid":'])('is not kept from a start by a claim that was written in part: %j', (text) => {
    const file = join(folder, 'run.json');
    writeFileSync(file, text);
    const release = claimDataFolder(folder);
    expect(statSync(file).size).toBeGreaterThan(text.length);
    release();
    expect(() => statSync(file)).toThrow('ENOENT');
  });

  it('refuses a folder that cannot be made, and explains what to do', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(() => openDataFolder({ DATA_DIR: join(folder, 'file') })).toThrow(/Set DATA_DIR/u);
  });
});
