import { describe, expect, it } from '@jest/globals';
import { costUsd } from './reply.ts';

const tokens = { inputTokens: 1_000_000, cachedInputTokens: 250_000, outputTokens: 100_000 };

describe('costUsd', () => {
  it('is unknown without a price', () => {
    expect(costUsd(tokens, undefined)).toBeNull();
  });

  it('takes the cached part of the prompt at its own price', () => {
    expect(costUsd(tokens, { input: 2, output: 10, cachedInput: 0.2 })).toBeCloseTo(1.5 + 0.05 + 1);
  });

  it('takes it at the full price where none is given', () => {
    expect(costUsd(tokens, { input: 2, output: 10 })).toBeCloseTo(3);
  });
});
