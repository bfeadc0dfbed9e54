import { describe, expect, it } from '@jest/globals';
import { hashParts, isSameSecret } from './hash.ts';

const turnId = 't_00000000000000000000000000000001';

/** Ids as tenants have them on disk. Each was made before there was one function for all of them. */
const stored = [
  { of: 'a session', parts: ['cs', 'channel_a', '+491701234567'], separator: 'unit', expected: 'e8951a51c423419c212d34a1ab2d05d9' },
  { of: 'a contact', parts: ['jürgen'], separator: 'unit', expected: '19b720a911fced55aecd96bf4ddcada1' },
  { of: 'a turn', parts: ['turn', 'acme 01', 'api:order-7'], separator: 'unit', expected: '934950bd566e3fe584a19d9d78a873f1' },
  { of: 'a fresh sender', parts: ['sender', turnId], separator: 'unit', expected: '9edc1e751a4448bf5a26c3b9bc690aac' },
  { of: 'an event', parts: ['event', 'acme', 'ep_0123456789ab', 'turn.ended', turnId], separator: 'json', expected: '0131c68151c572b1' },
  { of: 'a lane of messages', parts: ['whatsapp', '+491701234567', null], separator: 'json', expected: '2b0404dc1966' },
  { of: 'a lane of a thread', parts: ['slack', 'C0123', '1700000000.000100'], separator: 'json', expected: 'ab7b195d3edc' },
  { of: 'a message', parts: ['outbound', 'acme', turnId, 'reply'], separator: 'json', expected: '7f2056f1a1573d3e38ac' },
  { of: 'a heartbeat', parts: ['heartbeat', 'acme'], separator: 'json', expected: '946ad4fea324bcbc531e5d09cf4888c6' },
  {
    of: 'a request',
    parts: ['cs', 'hello', null, 'ada', 'web', ['u_1', 'u_2']],
    separator: 'json',
    expected: '582716a3e250b35bfa17217dc7da3eadc82994de5b2a92e84fd58c580d8d3b62',
  },
] as const;

describe('the hash of parts', () => {
  it.each(stored)('of $of is what stored ids have', ({ parts, separator, expected }) => {
    expect(hashParts(parts, { separator, digits: expected.length })).toBe(expected);
  });

  it('is whole unless fewer digits are asked for', () => {
    expect(hashParts(['a'], { separator: 'unit' })).toMatch(/^[0-9a-f]{64}$/u);
  });

  it('differs where the parts differ, even when their concatenation does not', () => {
    for (const separator of ['json', 'unit'] as const) {
      expect(hashParts(['a', 'bc'], { separator })).not.toBe(hashParts(['ab', 'c'], { separator }));
    }
  });
});

describe('a secret', () => {
  it('is the same when every character is', () => {
    expect(isSameSecret('s\u00e9cret', 's\u00e9cret')).toBe(true);
    for (const other of ['s\u00e9cres', 's\u00e9cre', 's\u00e9crets', 'S\u00e9cret'])
      expect(isSameSecret(other, 's\u00e9cret')).toBe(false);
  });

  it('is nothing when it is empty or missing', () => {
    for (const secret of ['', undefined]) for (const given of ['', undefined, 'x']) expect(isSameSecret(given, secret)).toBe(false);
    expect(isSameSecret(undefined, 'x')).toBe(false);
  });
});
