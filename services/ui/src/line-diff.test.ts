import { describe, expect, it } from '@jest/globals';
import { diffLines } from './line-diff.ts';

const write = (before: string, after: string): string =>
  diffLines(before, after)
    .map(({ kind, text }) => `${kind === 'same' ? ' ' : kind === 'added' ? '+' : '-'}${text}`)
    .join('|');

describe('the difference of two texts', () => {
  it.each([
    ['a\nb\nc', 'a\nb\nc', ' a| b| c'],
    ['a\nb\nc', 'a\nx\nc', ' a|-b|+x| c'],
    ['a\nb', 'a\nb\nc', ' a| b|+c'],
    ['a\nb\nc\nd', 'b\nc\nd\ne', '-a| b| c| d|+e'],
    ['', 'a', '-|+a'],
  ])('of %j and %j is %j', (before, after, expected) => {
    expect(write(before, after)).toBe(expected);
  });

  it('of large texts is found at once', () => {
    const long = Array.from({ length: 20_000 }, (_, line) => `line ${String(line)}`);
    const lines = diffLines(long.join('\n'), long.toReversed().join('\n'));
    expect(lines.filter(({ kind }) => kind === 'removed').length).toBeGreaterThan(19_000);
  });
});
