import { describe, expect, it } from '@jest/globals';
import { apiKeyOf } from './api-key.ts';

describe('apiKeyOf', () => {
  it('takes the key from either header, and from both when they agree', () => {
    expect(apiKeyOf({ 'x-api-key': 'ck_live_a' })).toBe('ck_live_a');
    expect(apiKeyOf({ authorization: 'Bearer ck_live_a' })).toBe('ck_live_a');
    expect(apiKeyOf({ authorization: 'bearer  ck_live_a ' })).toBe('ck_live_a');
    expect(apiKeyOf({ 'x-api-key': 'ck_live_a', authorization: 'Bearer ck_live_a' })).toBe('ck_live_a');
  });

  it('refuses two different keys, and another scheme', () => {
    expect(() => apiKeyOf({ 'x-api-key': 'ck_live_a', authorization: 'Bearer ck_live_b' })).toThrow(
      expect.objectContaining({ code: 'invalid_key' }),
    );
    expect(() => apiKeyOf({ 'x-api-key': 'ck_live_a', authorization: 'Basic eA==' })).toThrow(
      expect.objectContaining({ code: 'invalid_key' }),
    );
  });

  it('reports a missing key when there is none or an empty one', () => {
    expect(() => apiKeyOf({})).toThrow(expect.objectContaining({ code: 'missing_key' }));
    expect(() => apiKeyOf({ 'x-api-key': '' })).toThrow(expect.objectContaining({ code: 'missing_key' }));
  });
});
