import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import { checks } from './run-checks.mjs';

let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'expressions-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** The check as `npm run check` runs it, over a tree with one file in it. */
function checked(source, path = 'packages/x/src/y.ts') {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, source);
  const [[command, ...args]] = checks.find(({ name }) => name === 'expressions').commands;
  const { status, stdout } = spawnSync(command === 'node' ? process.execPath : command, [...args, folder], { cwd: root, encoding: 'utf8' });
  return { status, stdout };
}

describe('the check of expressions', () => {
  it.each([
    ['quadratic', 'const words = 1;\nexport const trim = (text) => text.replace(/[.,;]+$/u, words);', '2nd degree'],
    [
      'quadratic over the pieces of a text',
      'const a = 1;\nexport const strip = (text) => text.replaceAll(/<!--.*?-->/gsu, a);',
      '2nd degree',
    ],
    ['exponential', 'const a = 1;\nexport const isWord = (text) => /^(?:a+)+$/u.test(text + a);', 'exponential'],
    ['built from text', "const a = 1;\nexport const built = new RegExp('\\\\s+$', 'u');", '2nd degree'],
    ['built at run time', 'const a = 1;\nexport const built = (text) => new RegExp(text + a);', 'built at run time'],
  ])('fails on one that is %s, and names the place', (_what, source, verdict) => {
    const { status, stdout } = checked(source);
    expect(stdout).toContain('packages/x/src/y.ts:2: ');
    expect(stdout).toContain(verdict);
    expect(status).toBe(1);
  });

  it('passes linear ones, and one with a stated bound', () => {
    const { status, stdout } = checked(
      'export const word = /^[a-z]+$/u;\n// bounded-expression: of ten characters\nexport const end = /[.,;]+$/u;\n',
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });

  it('fails on a reason that is no longer needed, or that is none', () => {
    expect(checked('// bounded-expression: of ten characters\nexport const word = /^[a-z]+$/u;\n').stdout).toContain('y.ts:1: ');
    expect(checked('// bounded-expression:\nexport const end = /[.,;]+$/u;\n').status).toBe(1);
  });

  it.each(['packages/x/src/y.test.ts', 'infra/docs/y.mjs'])('leaves %s alone: only developers write what it matches', (path) => {
    expect(checked('export const end = /[.,;]+$/u;\n', path).status).toBe(0);
  });

  it('looks at what starts the services', () => {
    expect(checked('export const end = /[.,;]+$/u;\n', 'infra/start/y.mjs').status).toBe(1);
  });
});
