import { describe, expect, it } from '@jest/globals';
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { estimateTokens } from './estimate-tokens.ts';

const prose = 'It was a bright cold day in April, and the clocks were striking thirteen; nobody on the stairs looked up. ';

describe('estimateTokens', () => {
  it('counts short texts exactly', () => {
    expect(estimateTokens('')).toBe(0);
    expect(estimateTokens(prose)).toBe(countTokens(prose));
  });

  it('takes words that mean something to tokenizers as text', () => {
    expect(estimateTokens('<|endoftext|><|im_start|>')).toBeGreaterThan(5);
  });

  it('survives half of a surrogate pair', () => {
    expect(estimateTokens('\uD83D')).toBeGreaterThan(0);
  });

  it.each([
    ['prose', prose.repeat(400)],
    ['Chinese', '今天天气很好，我们去公园散步吧。'.repeat(800)],
    ['JSON', JSON.stringify(Array.from({ length: 500 }, (_, id) => ({ id, path: `notes/${String(id)}.md` })))],
  ])('is within a fifth of the count for a long text: %s', (_, text) => {
    const counted = countTokens(text);
    expect(Math.abs(estimateTokens(text) - counted)).toBeLessThan(counted / 5);
  });

  it('looks at a bounded part of one unbroken run of letters', () => {
    expect(estimateTokens('a'.repeat(20_000))).toBe(2500);
    expect(estimateTokens('a'.repeat(20_000_000))).toBe(2_500_000);
  });
});
