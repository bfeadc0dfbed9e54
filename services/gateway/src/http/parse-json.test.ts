import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { parseJson } from './parse-json.ts';

const nested = (levels: number): Buffer => Buffer.from('['.repeat(levels) + ']'.repeat(levels));

describe('parseJson', () => {
  it('reads JSON', () => {
    expect(parseJson(Buffer.from('{"a":["é",1,null]}'))).toEqual({ a: ['é', 1, null] });
  });

  it('takes as many levels as allowed and refuses one more', () => {
    expect(parseJson(nested(limits.jsonMaxDepth))).toBeInstanceOf(Array);
    expect(() => parseJson(nested(limits.jsonMaxDepth + 1))).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });

  it('takes as many values as allowed and refuses one more', () => {
    const wide = (values: number): Buffer => Buffer.from(`[${Array.from({ length: values - 1 }, () => '0').join(',')}]`);
    expect(parseJson(wide(limits.jsonMaxValues))).toHaveLength(limits.jsonMaxValues - 1);
    expect(() => parseJson(wide(limits.jsonMaxValues + 1))).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });

  it('survives a million levels', () => {
    expect(() => parseJson(nested(1_000_000))).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });

  it.each([
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['half of a surrogate pair', Buffer.from(String.raw`{"sender":"\ud800"}`)],
    ['half of a surrogate pair in a name', Buffer.from(String.raw`{"\udc00":1}`)],
    ['nothing at all', Buffer.alloc(0)],
    ['a cut body', Buffer.from('{"message":"x')],
    ['a byte order mark', Buffer.from('\uFEFF{}')],
  ])('refuses %s', (_name, bytes) => {
    expect(() => parseJson(bytes)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
  });
});
