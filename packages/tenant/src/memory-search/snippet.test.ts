import { describe, expect, it } from '@jest/globals';
import { readQuestion } from '@concierge/index';
import { cutSnippet } from './snippet.ts';

const filler = 'lorem ipsum dolor sit amet '.repeat(40);

describe('a snippet', () => {
  it('is the first part of a text in which most of the question stands', () => {
    const text = `${filler}the oven ${filler}the oven of the bakery ${filler}an oven, a bakery ${filler}`;
    expect(cutSnippet(text, readQuestion('oven bakery'))).toMatch(/^….*the oven of the bakery.*…$/u);
  });

  it('prefers the word itself to a form of it', () => {
    const text = `${filler}bakeries ${filler}bakery ${filler}`;
    expect(cutSnippet(text, readQuestion('bakery'))).toContain('bakery');
  });

  it('is the beginning of a text that has nothing of the question', () => {
    expect(cutSnippet(filler, readQuestion('oven'))).toMatch(/^lorem ipsum.*…$/u);
    expect(cutSnippet('', readQuestion('oven'))).toBe('');
  });

  it('counts a term once, and no word that is longer than a snippet', () => {
    const text = `${'oven '.repeat(200)}${filler}${'x'.repeat(500)} oven bakery ${filler}`;
    expect(cutSnippet(text, readQuestion('oven bakery'))).toContain('oven bakery');
  });

  it('takes no longer for a text in which every word is one of the question', () => {
    const terms = Array.from({ length: 24 }, (_, index) => `abcd${String.fromCodePoint(97 + index)}a`).join(' ');
    expect(cutSnippet('aa '.repeat(700_000), readQuestion('aa'))).toMatch(/^aa aa.*…$/u);
    expect(cutSnippet('abcdef '.repeat(30_000), readQuestion(terms))).toMatch(/^abcdef.*…$/u);
  });
});
