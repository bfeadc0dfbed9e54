import { describe, expect, it } from '@jest/globals';
import { readQuestion, termFor, weighTerm } from '@concierge/index';
import { fuseScores } from './meaning-search.ts';
import { meantTerms, slipsBetween, Vocabulary } from './meant-words.ts';
import { rankTexts, cutSnippet } from './rank-texts.ts';

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
    expect(weighTerm(term, 'market')).toBe(1);
    expect(weighTerm(term, 'markets')).toBeGreaterThan(0.5);
    expect(weighTerm(term, 'marketplaceholders')).toBe(0);
    expect(weighTerm(term, 'mask')).toBe(0);
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
    const meant = (text: string, known: string[]): readonly string[] => meantTerms(termFor(text), new Vocabulary(known))[0]?.meant ?? [];
    expect(meant('shoo', ['shoe', 'shirt'])).toEqual(['shoe']);
    expect(meant('shpo', ['shore'])).toEqual([]);
    expect(meant('accomodaton', ['accommodation'])).toEqual(['accommodation']);
    expect(meant('4711', ['4712'])).toEqual([]);
    expect(meant('abcde', ['abcdx', 'abcdy', 'abcdz', 'abcdw', 'abcxx'])).toEqual(['abcdw', 'abcdx', 'abcdy']);
  });
});

describe('compounds', () => {
  const splitInto = (text: string, known: string[]): string[] =>
    meantTerms(termFor(text), new Vocabulary(known)).map((term) => [term.text, ...term.meant].join(' '));

  it('come apart into words that are there, with what a language puts between them', () => {
    expect(splitInto('lawnmower', ['lawn', 'mower'])).toEqual(['lawn', 'mower']);
    expect(splitInto('zeitungsartikel', ['zeitung', 'artikel'])).toEqual(['zeitung', 'artikel']);
    expect(splitInto('lawnmower', ['lawn'])).toEqual(['lawnmower']);
  });

  it('are found by the word they end with, and by the one they begin with', () => {
    expect(splitInto('spritze', ['notfallspritze'])).toEqual(['spritze notfallspritze']);
    expect(best('notfall', ['Die Notfallspritze hängt hier.', 'Der Notar kommt.'])).toBe('Die Notfallspritze hängt hier.');
  });

  it('are found by their parts, one after the other', () => {
    expect(best('fire wood', ['Firewood comes in October.', 'The wooden fireplace.'])).toBe('Firewood comes in October.');
    expect(best('firewood', ['Wood for the fire.', 'Food for the fish.'])).toBe('Wood for the fire.');
  });
});

describe('fusing scores', () => {
  const fuse = (words: Record<string, number>, byMeaning: string[], unembedded: string[] = []): string[] => {
    const byWords = Object.entries(words).map(([key, score]) => ({ key, score }));
    return [...fuseScores({ byWords, byMeaning, unembedded: new Set(unembedded) }).keys()];
  };

  it('puts what both know before what one of them knows', () => {
    expect(fuse({ a: 0.5, b: 0.45 }, ['c', 'b'])[0]).toBe('b');
  });

  it('keeps what contains most of the question before all that is merely near', () => {
    expect(fuse({ right: 0.8, other: 0.3 }, ['n1', 'n2', 'other', 'n3', 'n4'])[0]).toBe('right');
  });

  it('lets meaning decide where the words match little', () => {
    expect(fuse({ a: 0.1, b: 0.09, c: 0.08 }, ['right', 'n2'])[0]).toBe('right');
  });

  it('keeps the best by words among the first five, unless it contains hardly anything of it', () => {
    const near = Array.from({ length: 20 }, (_, number) => `n${String(number)}`);
    expect(fuse({ best: 0.22, other: 0.21 }, near).indexOf('best')).toBe(4);
    expect(fuse({ best: 0.1, other: 0.09 }, near).indexOf('best')).toBeGreaterThan(4);
  });

  it('does not put back what has no vector yet', () => {
    expect(fuse({ right: 0.7, other: 0.5 }, ['other'], ['right'])[0]).toBe('right');
    expect(fuse({ right: 0.7, other: 0.5 }, ['other'])[0]).toBe('other');
  });

  it('keeps one list as it is', () => {
    expect(fuse({ a: 0.2, b: 0.1 }, [])).toEqual(['a', 'b']);
    expect(fuse({}, ['a', 'b'])).toEqual(['a', 'b']);
  });
});

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
