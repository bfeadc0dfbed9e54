import { describe, expect, it } from '@jest/globals';
import { requestIdOf } from './request-id.ts';

describe('requestIdOf', () => {
  it('keeps a sane one', () => {
    expect(requestIdOf('3f2c-77:trace.1')).toBe('3f2c-77:trace.1');
  });

  it.each([undefined, '', 'short', 'with space in it', 'x'.repeat(129), ['a-long-enough', 'b-long-enough'], '"quoted-value"'])(
    'makes a fresh one instead of %p',
    (given) => {
      const made = requestIdOf(given);
      expect(made).toMatch(/^r_[0-9a-f]{32}$/u);
      expect(requestIdOf(given)).not.toBe(made);
    },
  );
});
