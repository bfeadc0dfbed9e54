import { describe, expect, it } from '@jest/globals';
import { findOldWords } from './words.mjs';

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
