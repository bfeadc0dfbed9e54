import { describe, expect, it } from '@jest/globals';
import { findWalksByPath } from './paths-by-name.mjs';

describe('the check for walks by path', () => {
  it.each([
    'await rm(away, { recursive: true, force: true });',
    "await rm(\n  join(root, 'x'),\n  { force: true, recursive: true },\n);",
    'for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {',
    'await cp(from, to);',
    "for await (const path of glob('**', { cwd: root })) {",
  ])('finds %j', (source) => {
    expect(findWalksByPath('a.ts', `const before = 1;\n${source}`)).toEqual([
      expect.stringMatching(/^a\.ts:2: (?:rm|readdir|cp|glob) goes by path/u),
    ]);
  });

  it.each([
    'await rm(partial, { force: true });',
    'await mkdir(to, { recursive: true });',
    'await readdir(folder);\nawait mkdir(folder, { recursive: true });',
    "await scope.files.list('skills', { recursive: true });",
    'const warm = confirm(question, { recursive: true });',
  ])('leaves %j alone', (source) => {
    expect(findWalksByPath('a.ts', source)).toEqual([]);
  });
});
