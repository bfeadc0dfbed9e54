import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { checkLayout } from './layout.mjs';

const long = (text = '') => `${text}\n${'// a line\n'.repeat(60)}`;
let root;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'layout-'));
  for (const name of ['a', 'b']) plantPackage(name);
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function plant(path, text) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function plantPackage(name) {
  const exports = { '.': { '@concierge/source': './src/index.ts' }, './part': { '@concierge/source': './src/part.ts' } };
  plant(`packages/${name}/package.json`, JSON.stringify({ name: `@concierge/${name}`, exports }));
}

const small = 'export const one = 1;\nexport const two = 2;\n';

describe('the check of the layout', () => {
  it('finds a small file that one file imports, and names the file', () => {
    plant('packages/a/src/small.ts', small);
    plant('packages/a/src/large.ts', long("import { one } from './small.ts';"));
    expect(checkLayout(root)).toEqual(['packages/a/src/small.ts: 2 lines for packages/a/src/large.ts alone']);
  });

  it.each([
    ["import type { one } from './small.ts';", 'by its path'],
    ["export const later = async () => import('./small.ts');", 'when it is needed'],
    ["import { one } from '@concierge/a';", 'through the package'],
    ["import * as all from '@concierge/a';", 'with all of the package'],
  ])('counts %j as an importer', (text) => {
    plant('packages/a/src/small.ts', small);
    plant('packages/a/src/index.ts', "export { one } from './small.ts';\n");
    plant('packages/a/src/first.ts', long("import { one } from './small.ts';"));
    plant('packages/a/src/second.ts', long(text));
    expect(checkLayout(root)).toEqual([]);
  });

  it.each([
    ['packages/a/src/index.ts', "export { one } from './small.ts';\n", 'an index that passes it on'],
    ['packages/b/src/other.ts', long("import { two } from '@concierge/a';"), 'one that takes another name from the index'],
    ['packages/a/src/small.test.ts', "import { one } from './small.ts';\n", 'a test'],
    ['packages/a/test/small.int.test.ts', "import { one } from '../src/small.ts';\n", 'a test elsewhere'],
    ['packages/testing/src/server.ts', long("import { one } from '@concierge/a';"), 'what tests are made with'],
  ])('does not count %s', (path, text) => {
    plant('packages/a/src/index.ts', "export { one } from './small.ts';\n");
    plant('packages/a/src/small.ts', small);
    plant('packages/a/src/large.ts', long("import { one } from './small.ts';"));
    plant(path, text);
    expect(checkLayout(root)).toHaveLength(1);
  });

  it.each([
    'main.ts',
    'config.ts',
    'part.ts',
    'shapes.d.ts',
    'wire.ts',
    'index.ts',
    'write-thread.ts',
    'writer-main.ts',
    'small.test.ts',
    'fixtures/sample.ts',
  ])('leaves %s alone', (name) => {
    plant(`packages/a/src/${name}`, small);
    expect(checkLayout(root)).toEqual([]);
  });

  it('finds a folder with more than twenty files, and counts neither tests nor an index', () => {
    for (let number = 1; number <= 20; number += 1) plant(`packages/a/src/f${number}.ts`, long());
    for (const name of ['index.ts', 'f1.test.ts', 'fixtures/sample.ts']) plant(`packages/a/src/${name}`, small);
    expect(checkLayout(root)).toEqual([]);
    plant('packages/a/src/script.lua', '-- one more\n');
    expect(checkLayout(root)).toEqual(['packages/a/src: 21 files, and may have 20']);
  });
});
