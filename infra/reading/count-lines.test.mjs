import { describe, expect, it } from '@jest/globals';
import { linesRun } from './count-lines.mjs';

const source = `export function read(path) {
  // a comment
  if (path === null) {
    return null;
  }

  return path;
}
const x = 1;`;

const between = (start, end) => ({ startOffset: source.indexOf(start), endOffset: source.indexOf(end) });
/** As V8 reports a function: its own range, and one for each block with another count. */
const called = (count, ...blocks) => ({ ranges: [{ ...between('function', '\nconst'), count }, ...blocks] });
const notEntered = { ...between('{\n    return null', '\n\n'), count: 0 };
const moduleLevel = { ranges: [{ startOffset: 0, endOffset: source.length, count: 0 }] };

describe('the lines that ran', () => {
  it('are those of functions that were called, without comments, blank lines and blocks that were not entered', () => {
    expect(linesRun(source, [moduleLevel, called(1, notEntered)], [])).toEqual([1, 3, 7, 8]);
  });

  it('are not those that run idle as well', () => {
    expect(linesRun(source, [moduleLevel, called(2)], [moduleLevel, called(1, notEntered)])).toEqual([3, 4, 5]);
  });

  it('are none where nothing was called', () => {
    expect(linesRun(source, [moduleLevel], [])).toEqual([]);
  });
});
