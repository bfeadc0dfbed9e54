import { describe, expect, it } from '@jest/globals';
import { toRequestId } from './request-context.ts';

describe('toRequestId', () => {
  it('keeps a sane one', () => {
    expect(toRequestId('3f2c-77:trace.1')).toBe('3f2c-77:trace.1');
  });

  it.each([undefined, '', 'short', 'with space in it', 'x'.repeat(129), ['a-long-enough', 'b-long-enough'], '"quoted-value"'])(
    'makes a fresh one instead of %p',
    (given) => {
      const made = toRequestId(given);
      expect(made).toMatch(/^r_[0-9a-f]{32}$/u);
      expect(toRequestId(given)).not.toBe(made);
    },
  );
});
