import { describe, expect, it } from '@jest/globals';
import { findNamesOf, findOldWords, findWideComments } from './words.mjs';

describe('the check for words that were replaced', () => {
  it.each([
    ['// Somebody else has it.', 'somebody'],
    ['/** The worker lets\n * go of it. */', 'lets go of'],
    ['const doorbells = new Doorbells();', 'doorbells'],
    ['log.info({ accountId });', 'accountId'],
    ["import { HeldFolder } from './path-walk.ts';", 'HeldFolder'],
  ])('finds %j', (text, word) => {
    expect(findOldWords('packages/turn/src/a.ts', `\n${text}`)).toContainEqual(expect.stringContaining(`:2: "${word}"`));
  });

  it('leaves stored names, the glossary and whole other words alone', () => {
    expect(findOldWords('packages/tenant/src/keys/keys.ts', 'record.accountId')).toEqual([]);
    expect(findOldWords('docs/glossary.md', 'doorbell')).toEqual([]);
    expect(findOldWords('a.ts', 'const plaid = exchange(stripe);')).toEqual([]);
  });
});

describe('the check for functions named after what they are of', () => {
  it.each([
    'function keysOf(record) {',
    'export async function keysOf(record: Row): Promise<string[]> {',
    'const keysOf = (record: Row): string[] => [];',
    'const keysOf = async function (record) {',
    'export const keysOf: Reader = async (record) => [];',
    'const keysOf = record => [];',
    '  static async keysOf<Row>(record: Row): Promise<string[]> {',
    '  #keysOf(record) {',
  ])('finds %j', (code) => {
    const [, name] = /(#?keysOf)/u.exec(code);
    expect(findNamesOf('a.ts', `\n${code}\n`)).toEqual([`a.ts:2: ${name.replace('#', '')} is not a verb and its object`]);
  });

  it.each([
    'const all = keysOf(record);',
    'export const keyOf = {',
    '    for (const key of keysOf(record)) {',
    'const positionOf = 3;',
    '  valueOf(): number {',
    '    if (list.indexOf(one) > 0) {',
    '  const { childrenOf } = await load();',
    '  get anyOf() {',
  ])('leaves %j alone', (code) => {
    expect(findNamesOf('a.ts', `\n${code}\n`)).toEqual([]);
  });
});

describe('the check for wide comments', () => {
  it('finds a comment over 120 columns, counted in characters', () => {
    const wide = `  // ${'ä'.repeat(120)}`;
    expect(findWideComments('a.ts', `const a = 1;\n${wide}\n`)).toEqual(['a.ts:2: a comment of 125 columns']);
    expect(findWideComments('a.lua', `-- ${'x'.repeat(118)}`)).toHaveLength(1);
  });

  it('leaves code, documents and comments of 120 columns alone', () => {
    expect(findWideComments('a.ts', ` * ${'ä'.repeat(117)}\nconst text = '${'x'.repeat(200)}';`)).toEqual([]);
    expect(findWideComments('a.md', `* ${'x'.repeat(200)}`)).toEqual([]);
  });
});
