import { describe, expect, it } from '@jest/globals';
import { hasMoreValues } from './values.ts';

describe('hasMoreValues', () => {
  it('counts every value once, lists and maps among them, and no names', () => {
    const value = { a: [1, 2, { b: null }], c: 'x' };
    expect(hasMoreValues(value, 7)).toBe(false);
    expect(hasMoreValues(value, 6)).toBe(true);
    expect(hasMoreValues('alone', 1)).toBe(false);
  });

  it('takes any depth', () => {
    const levels = 100_000;
    const deep: unknown = JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    expect(hasMoreValues(deep, levels)).toBe(false);
    expect(hasMoreValues(deep, levels - 1)).toBe(true);
  });
});
