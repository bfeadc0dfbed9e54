import { describe, expect, it } from '@jest/globals';
import { isSameSecret } from './same-secret.ts';

describe('a secret', () => {
  it('is the same when every character is', () => {
    expect(isSameSecret('s\u00e9cret', 's\u00e9cret')).toBe(true);
    for (const other of ['s\u00e9cres', 's\u00e9cre', 's\u00e9crets', 'S\u00e9cret'])
      expect(isSameSecret(other, 's\u00e9cret')).toBe(false);
  });

  it('is nothing when it is empty or missing', () => {
    for (const secret of ['', undefined]) for (const given of ['', undefined, 'x']) expect(isSameSecret(given, secret)).toBe(false);
    expect(isSameSecret(undefined, 'x')).toBe(false);
  });
});
