import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from './bootstrap.mjs';

const dockerfile = readFileSync(join(root, 'infra/Dockerfile'), 'utf8');
const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gmu)].flatMap(([, sources]) => sources.split(' '));

describe('a file with secrets', () => {
  it.each(['.env', '.env.production', 'infra/.env', 'secrets/key_secret'])(
    'such as %s is neither committed nor sent to the image builder',
    (name) => {
      expect(() => execFileSync('git', ['check-ignore', '--quiet', '--no-index', name], { cwd: root })).not.toThrow();
      const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
      expect(ignored.some((pattern) => pattern !== '' && (matchesGlob(name, pattern) || name.startsWith(`${pattern}/`)))).toBe(true);
    },
  );
});

describe('the Dockerfile of the services', () => {
  it('copies nothing that is not there', () => {
    expect(copied.length).toBeGreaterThan(10);
    expect(copied.filter((name) => !existsSync(join(root, name)))).toEqual([]);
  });

  it('copies the manifest of every package before it installs', () => {
    const folders = ['packages', 'services'].flatMap((parent) => readdirSync(join(root, parent)).map((name) => `${parent}/${name}`));
    const manifests = folders.map((folder) => `${folder}/package.json`).filter((name) => existsSync(join(root, name)));
    expect(manifests.filter((name) => !copied.includes(name))).toEqual([]);
  });
});
