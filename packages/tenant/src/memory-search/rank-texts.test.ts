import { describe, expect, it } from '@jest/globals';
import { fuseRanks } from './fuse-ranks.ts';
import { slipsBetween, withMeantWords } from './meant-words.ts';
import { readQuestion, weightOf } from './question.ts';
import { rankTexts } from './rank-texts.ts';

const best = (query: string, texts: string[]): string | undefined => texts[rankTexts(query, texts)[0] ?? -1];

describe('ranking texts by words', () => {
  it('puts rare words before common ones', () => {
    const texts = ['the shop is open on the day of the fair', 'the cellar key hangs in the office', 'the the the the the'];
    expect(best('where is the key', texts)).toBe(texts[1]);
  });

  it('finds forms of a word in languages that inflect at the end, without knowing any of them', () => {
    expect(best('refunds', ['We refunded the order.', 'We closed the order.'])).toBe('We refunded the order.');
    expect(best('Lieferung', ['Der Preis steigt.', 'Lieferungen dauern drei Tage.'])).toBe('Lieferungen dauern drei Tage.');
    expect(best('доставки', ['Оплата картой.', 'Доставка бесплатно.'])).toBe('Доставка бесплатно.');
    expect(best('zapato', ['Los zapatos llegan.', 'La tienda cierra.'])).toBe('Los zapatos llegan.');
  });

  it('prefers the word itself to a form of it', () => {
    expect(rankTexts('returns', ['one returned parcel here', 'one returns parcel here'])).toEqual([1, 0]);
  });

  it('forgives a typing error only where the word stands nowhere', () => {
    expect(best('delviery', ['delivery takes three days', 'devilry of old'])).toBe('delivery takes three days');
    expect(rankTexts('form', ['the form is blue', 'the farm is red'])).toEqual([0]);
  });

  it('has no list of words that do not count: one language’s filler is another one’s noun', () => {
    expect(best('die', ['the dice and the die', 'the cube'])).toBe('the dice and the die');
    expect(best('was', ['it was so', 'es ist so'])).toBe('it was so');
  });

  it('answers nothing to a question of which nothing is there, and the later of equals first', () => {
    expect(rankTexts('zebra', ['a horse', 'a cow'])).toEqual([]);
    expect(rankTexts('horse', ['a horse', 'a horse'])).toEqual([1, 0]);
    expect(rankTexts('…!?', ['a horse'])).toEqual([]);
  });
});

describe('words of a question', () => {
  it('stand for themselves, for near forms, and not for what only begins alike', () => {
    const [term] = readQuestion('market');
    if (term === undefined) throw new Error('no term');
    expect(weightOf(term, 'market')).toBe(1);
    expect(weightOf(term, 'markets')).toBeGreaterThan(0.5);
    expect(weightOf(term, 'marketplaceholders')).toBe(0);
    expect(weightOf(term, 'mask')).toBe(0);
  });

  it('are each there once, and no more than a bound', () => {
    expect(readQuestion('a b to to be')).toMatchObject([{ text: 'to' }, { text: 'be' }]);
    expect(readQuestion('a')).toMatchObject([{ text: 'a' }]);
    expect(readQuestion(Array.from({ length: 500 }, (_, index) => `w${String(index)}`).join(' '))).toHaveLength(24);
  });
});

describe('slips', () => {
  it.each([
    ['delivery', 'delivery', 0],
    ['delviery', 'delivery', 1],
    ['delivry', 'delivery', 1],
    ['dellivery', 'delivery', 1],
    ['delicery', 'delivery', 1],
    ['dlvery', 'delivery', 2],
    ['abc', 'xyz', 3],
  ])('between %s and %s are %p', (one, other, slips) => {
    expect(slipsBetween(one, other, 2)).toBe(slips);
  });

  it('are forgiven one in a short word, two in a long one, none in numbers', () => {
    const meant = (text: string, known: string[]): readonly string[] => withMeantWords({ text, stem: null, meant: [] }, known).meant;
    expect(meant('shoo', ['shoe', 'shirt'])).toEqual(['shoe']);
    expect(meant('shpo', ['shore'])).toEqual([]);
    expect(meant('accomodaton', ['accommodation'])).toEqual(['accommodation']);
    expect(meant('4711', ['4712'])).toEqual([]);
    expect(meant('abcde', ['abcdx', 'abcdy', 'abcdz', 'abcdw', 'abcxx'])).toEqual(['abcdw', 'abcdx', 'abcdy']);
  });
});

describe('fusing ranks', () => {
  it('puts what both lists know before what one of them puts first', () => {
    expect([...fuseRanks(['a', 'b', 'c'], ['d', 'b', 'e']).keys()][0]).toBe('b');
  });

  it('keeps one list as it is', () => {
    expect([...fuseRanks(['a', 'b'], []).keys()]).toEqual(['a', 'b']);
    expect(fuseRanks().size).toBe(0);
  });
});
