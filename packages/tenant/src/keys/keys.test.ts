import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { decodeKey, encodeKey, type KeyClaims } from './keys.ts';

const secret = 'a secret of the operator';
const claims: KeyClaims = { keyId: 'k_0123456789abcdef', accountId: 'acme', scopes: ['admin'], issuedAt: '2026-11-20T10:00:00.000Z' };
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

describe('API keys', () => {
  it('begin with ck_live_, are URL-safe and name their tenant', () => {
    const key = encodeKey(claims, secret);
    expect(key).toMatch(/^ck_live_[A-Za-z0-9_-]+$/u);
    expect(decodeKey(key, secret)).toEqual(claims);
  });

  it('are worth nothing under another secret', () => {
    expect(decodeKey(encodeKey(claims, 'another secret'), secret)).toBeUndefined();
  });

  it('do not survive the change of any one character', () => {
    const key = encodeKey(claims, secret);
    for (let index = 0; index < key.length; index += 1) {
      const other = key[index] === 'A' ? 'B' : 'A';
      expect(decodeKey(key.slice(0, index) + other + key.slice(index + 1), secret)).toBeUndefined();
    }
  });

  it('have one spelling only', () => {
    // In lengths whose last character carries unused bits, that character has duplicates which decode to the same
    // bytes.
    for (const accountId of ['a', 'ab', 'abc']) {
      const key = encodeKey({ ...claims, accountId }, secret);
      const duplicates = alphabet
        .split('')
        .map((last) => key.slice(0, -1) + last)
        .filter((duplicate) => decodeKey(duplicate, secret) !== undefined);
      expect(duplicates).toEqual([key]);
      for (const suffix of ['=', '==', ' ', '\n', '.', '%']) expect(decodeKey(key + suffix, secret)).toBeUndefined();
      expect(decodeKey(key.replace('ck_live_', 'ck_live_ '), secret)).toBeUndefined();
    }
  });

  it.each(['', 'ck_live_', 'ck_live_AAAA', 'sk_live_abc', `ck_live_${'A'.repeat(5000)}`, 'ck_live_\0'])('are not %j', (raw) => {
    expect(decodeKey(raw, secret)).toBeUndefined();
  });

  it('are checked for their form even when they are signed', () => {
    const sign = (payload: string): string => {
      const bytes = Buffer.from(payload);
      const signature = createHmac('sha256', secret).update('concierge api key 1\n').update(bytes).digest();
      return `ck_live_${Buffer.concat([bytes, signature]).toString('base64url')}`;
    };
    expect(decodeKey(sign(JSON.stringify(claims)), secret)).toEqual(claims);
    expect(decodeKey(sign(JSON.stringify({ ...claims, accountId: '../other' })), secret)).toBeUndefined();
    expect(decodeKey(sign(JSON.stringify({ ...claims, keyId: '../../x' })), secret)).toBeUndefined();
    expect(decodeKey(sign(JSON.stringify({ ...claims, more: true })), secret)).toBeUndefined();
    expect(decodeKey(sign('not json'), secret)).toBeUndefined();
  });
});
