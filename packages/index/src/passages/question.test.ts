import { describe, expect, it } from '@jest/globals';
import { foldText, readQueryTerms, readTerms } from './question.ts';

describe('folding', () => {
  it.each([
    ['Café CRÈME', 'cafe creme'],
    ['Straße, Łódź, smørrebrød', 'strasse, lodz, smorrebrod'],
    ['Ёлка и Йогурт', 'елка и иогурт'],
    ['ΟΔΟΣ', 'οδοσ'],
    ['İstanbul ILIK', 'istanbul ilik'],
    ['مُحَمَّد', 'محمد'],
    ['ﬁle ①②', 'file 12'],
    ['한국어', '한국어'],
    ['हिन्दी', 'हिन्दी'],
  ])('reads %s as %s, in any form', (text, folded) => {
    expect(foldText(text)).toBe(folded);
  });

  it('gives the same for letters that are composed and those that are not', () => {
    for (const text of ['é', 'ö', 'が', 'й', '각']) expect(foldText(text.normalize('NFD'))).toBe(foldText(text.normalize('NFC')));
  });

  it.each([
    ['accents', 'a', '\u0301\u0323'],
    ['voicing marks that are letters until they are decomposed', 'カ', '\uFF9E\u0301'],
    ['marks between which something is taken away', 'क', '\u093C\u0640\u094D\u0640'],
  ])('takes no longer for a text that is nothing but marks: %s', (_what, letter, marks) => {
    expect(foldText(letter + marks.repeat(300_000))).not.toBe('');
  });

  it('keeps words of every script, and nothing between them', () => {
    expect(readTerms('Order #4711-B: shipped! Заказ №12 — отправлен')).toEqual([
      'order',
      '4711',
      'b',
      'shipped',
      'заказ',
      'no12',
      'отправлен',
    ]);
  });

  it('makes pairs of what is written without spaces, so that a part of a sentence is found', () => {
    expect(readTerms('営業時間')).toEqual(['営業', '業時', '時間', '間']);
    expect(readQueryTerms('営業時間')).toEqual(['営業', '業時', '時間']);
    expect(readQueryTerms('間')).toEqual(['間']);
    expect(readTerms('iPhone15を買う')).toEqual(['iphone15', 'を買', '買う', 'う']);
  });

  it('lets nothing through that a query language could take for its own', () => {
    for (const term of readTerms(`a"b'c:d*e(f)g|h&i!j\\k§l<->m^n{o} \u0000p\uD800q`)) expect(term).toMatch(/^[\p{L}\p{N}\p{M}]+$/u);
  });
});
