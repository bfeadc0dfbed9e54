import { describe, expect, it } from '@jest/globals';
import { onOneLine, withoutEnding, withoutSpans } from './text.ts';

describe('withoutEnding', () => {
  it.each([
    ['https://x.example//', '/', 'https://x.example'],
    ['a.b.).', '.)', 'a.b'],
    ['...', '.', ''],
    ['', '.', ''],
    ['a', '', 'a'],
  ])('takes from %j what is among %j: %j', (text, characters, left) => {
    expect(withoutEnding(text, characters)).toBe(left);
  });
});

describe('withoutSpans', () => {
  it.each([
    ['a <!-- b --> c', 'a  c'],
    ['<!-- a --><!-- b -->', ''],
    ['<!-- a <!-- b --> c -->', ' c -->'],
    ['<!-->', '<!-->'],
    ['a <!-- b', 'a <!-- b'],
    ['-->', '-->'],
  ])('makes of %j %j', (text, left) => {
    expect(withoutSpans(text, '<!--', '-->')).toBe(left);
  });

  it('takes no longer for a text that opens without end', () => {
    expect(withoutSpans('<!--'.repeat(2_000_000), '<!--', '-->')).toHaveLength(8_000_000);
  });
});

it('onOneLine joins lines by one space', () => {
  expect(onOneLine('a \n\n  b\nc')).toBe('a b c');
});
