import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from '../bootstrap.mjs';
import LongestFirst, { longestFiles } from './longest-first.mjs';

describe('the order of test files', () => {
  it('names files that are there', () => {
    expect(longestFiles.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('begins with the longest ones', () => {
    const sizes = { [join(root, 'a.test.ts')]: 1, [join(root, 'b.test.ts')]: 2, [join(root, longestFiles[0] ?? '')]: 0 };
    const context = { config: { cache: false }, hasteFS: { getSize: (path) => sizes[path] } };
    const sorted = new LongestFirst({}).sort(Object.keys(sizes).map((path) => ({ path, context })));
    expect(sorted.map(({ path }) => sizes[path])).toEqual([0, 2, 1]);
  });
});
