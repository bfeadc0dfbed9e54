import { describe, expect, it } from '@jest/globals';
import { splitPages } from './web-pages.ts';

describe('a long text in pages', () => {
  it('is whole again when the pages are joined', () => {
    const text = 'A line of words.\nAnother one.\n\nAnd a paragraph 🥐🥐🥐 with more. '.repeat(50);
    for (const size of [10, 37, 100, 1000]) {
      const pages = splitPages(text, size);
      expect(pages.join('')).toBe(text);
      expect(pages.every((page) => page.length > 0 && page.length <= size && page.isWellFormed())).toBe(true);
    }
  });

  it('breaks at a paragraph, else a line, else a word, when one ends near the end of the page', () => {
    expect(splitPages(`${'a'.repeat(85)}\n\n${'b'.repeat(8)}\nccc ddd`, 100)[0]).toBe(`${'a'.repeat(85)}\n\n`);
    expect(splitPages(`${'a'.repeat(85)}\n${'b'.repeat(8)} ccc ddd`, 100)[0]).toBe(`${'a'.repeat(85)}\n`);
    expect(splitPages(`${'a'.repeat(85)} ${'b'.repeat(30)}`, 100)[0]).toBe(`${'a'.repeat(85)} `);
    expect(splitPages(`a\n${'b'.repeat(200)}`, 100)[0]).toHaveLength(100);
  });

  it('is one page when there is nothing', () => {
    expect(splitPages('', 100)).toEqual(['']);
  });
});
