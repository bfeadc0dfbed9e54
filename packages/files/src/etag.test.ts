import { describe, expect, it } from '@jest/globals';
import { etagMatches, etagOf } from './etag.ts';

describe('entity tags', () => {
  it('are quoted and follow the content', () => {
    expect(etagOf('a')).toBe('"ca978112ca1bbdcafac231b39a23dc4d"');
    expect(etagOf(Buffer.from('a'))).toBe(etagOf('a'));
    expect(etagOf('b')).not.toBe(etagOf('a'));
  });

  it('match themselves, in a list, and the star; never what does not exist', () => {
    const tag = etagOf('a');
    expect(etagMatches(tag, tag)).toBe(true);
    expect(etagMatches(`"x", ${tag}`, tag)).toBe(true);
    expect(etagMatches('*', tag)).toBe(true);
    expect(etagMatches('"x"', tag)).toBe(false);
    expect(etagMatches(`W/${tag}`, tag)).toBe(false);
    expect(etagMatches('*', undefined)).toBe(false);
  });
});
