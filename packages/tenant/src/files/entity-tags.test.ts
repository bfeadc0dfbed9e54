import { describe, expect, it } from '@jest/globals';
import { etagMatches, toEtag } from './tenant-files.ts';

describe('entity tags', () => {
  it('are quoted and follow the content', () => {
    expect(toEtag('a')).toBe('"ca978112ca1bbdcafac231b39a23dc4d"');
    expect(toEtag(Buffer.from('a'))).toBe(toEtag('a'));
    expect(toEtag('b')).not.toBe(toEtag('a'));
  });

  it('match themselves, in a list, and the star; never what does not exist', () => {
    const tag = toEtag('a');
    expect(etagMatches(tag, tag)).toBe(true);
    expect(etagMatches(`"x", ${tag}`, tag)).toBe(true);
    expect(etagMatches('*', tag)).toBe(true);
    expect(etagMatches('"x"', tag)).toBe(false);
    expect(etagMatches(`W/${tag}`, tag)).toBe(false);
    expect(etagMatches('*', undefined)).toBe(false);
  });
});
