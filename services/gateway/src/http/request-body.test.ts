import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { BodyBudget, parseJson } from './request-body.ts';

const { openAiBodyMaxBytes: largest, bodiesMaxBytes: room, bodiesOfPeerMaxBytes: share, jsonBodyMaxBytes: small } = limits;
const overloaded = expect.objectContaining({ code: 'overloaded', retryAfterSeconds: 2 });

/** With every place for large bodies taken, by many peers. */
function full(): BodyBudget {
  const budget = new BodyBudget();
  for (let held = 0; held < room; held += largest) budget.reserve(`peer ${String(held)}`, largest);
  return budget;
}

describe('BodyBudget', () => {
  it('refuses what no longer fits', () => {
    expect(() => full().reserve('another', largest)).toThrow(overloaded);
  });

  it('gives one peer its share and leaves the rest to the others', () => {
    const budget = new BodyBudget();
    for (let held = 0; held < share; held += largest) budget.reserve('greedy', largest);
    expect(() => budget.reserve('greedy', largest)).toThrow(overloaded);
    expect(() => budget.reserve('modest', largest)).not.toThrow();
  });

  it('counts small bodies apart, so that large ones never take their place, and bounds them too', () => {
    const budget = full();
    for (let held = 0; held < share; held += small) budget.reserve('greedy', small);
    expect(() => budget.reserve('greedy', small)).toThrow(overloaded);
    expect(() => budget.reserve('modest', small)).not.toThrow();
  });

  it('gives room back when a body turns out smaller, and all of it at the end', () => {
    const budget = new BodyBudget();
    for (let round = 0; round < 3 * (room / largest); round += 1) {
      using held = budget.reserve('peer', largest);
      held.shrinkTo(10);
      using other = budget.reserve('peer', share - 10);
      other.shrinkTo(share);
    }
    expect(() => budget.reserve('peer', share)).not.toThrow();
  });
});

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
