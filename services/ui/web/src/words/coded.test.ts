import { describe, expect, it } from '@jest/globals';
import { channelCheckCodes, fileProblemCodes, findingCodes } from '@concierge/contract';
import { codedDe } from './de-coded.ts';
import { codedEn, sayCode } from './en-coded.ts';

const codes = [...channelCheckCodes, ...fileProblemCodes, ...findingCodes];
const namesIn = (text: string): readonly string[] => [...text.matchAll(/\{\w+\}/gu)].map(([name]) => name).toSorted();

describe('a sentence of the service, by its code', () => {
  it('has words in every language for every code that the service can send, and for no other', () => {
    expect({ en: Object.keys(codedEn).toSorted(), de: Object.keys(codedDe).toSorted() }).toEqual({
      en: codes.toSorted(),
      de: codes.toSorted(),
    });
  });

  it.each(codes)('%s is said in German with the same parts as in English', (code) => {
    expect(codedDe[code]).not.toBe(codedEn[code]);
    expect(namesIn(codedDe[code])).toEqual(namesIn(codedEn[code]));
  });

  it('has its parts filled in', () => {
    const said = { message: 'They are those of Ada.', code: 'credentials_valid', params: { account: 'Ada' } };
    expect(sayCode(codedDe, said)).toBe('Sie gehören zu Ada.');
  });

  it.each([
    { message: 'Something new.', code: 'of_a_later_version' },
    { message: 'Of an earlier one.' },
    { message: '', code: 'toString' },
  ])('is left to the service where the page has no words for it: $code', (said) => {
    expect(sayCode(codedDe, said)).toBeUndefined();
  });
});
