import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { readApiKey, guardOperator, type Asker } from './request-context.ts';

describe('readApiKey', () => {
  it('takes the key from either header, and from both when they agree', () => {
    expect(readApiKey({ 'x-api-key': 'ck_live_a' })).toBe('ck_live_a');
    expect(readApiKey({ authorization: 'Bearer ck_live_a' })).toBe('ck_live_a');
    expect(readApiKey({ authorization: 'bearer  ck_live_a ' })).toBe('ck_live_a');
    expect(readApiKey({ 'x-api-key': 'ck_live_a', authorization: 'Bearer ck_live_a' })).toBe('ck_live_a');
  });

  it('refuses two different keys, and another scheme', () => {
    expect(() => readApiKey({ 'x-api-key': 'ck_live_a', authorization: 'Bearer ck_live_b' })).toThrow(
      expect.objectContaining({ code: 'invalid_key' }),
    );
    expect(() => readApiKey({ 'x-api-key': 'ck_live_a', authorization: 'Basic eA==' })).toThrow(
      expect.objectContaining({ code: 'invalid_key' }),
    );
  });

  it('reports a missing key when there is none or an empty one', () => {
    expect(() => readApiKey({})).toThrow(expect.objectContaining({ code: 'missing_key' }));
    expect(() => readApiKey({ 'x-api-key': '' })).toThrow(expect.objectContaining({ code: 'missing_key' }));
  });
});

const asker = (remoteAddress: string, headers: IncomingHttpHeaders): Asker => ({ socket: { remoteAddress }, headers });
const token = 'the-operators-token';

describe('guardOperator without a token', () => {
  it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1'])('lets %s in', (address) => {
    expect(() => guardOperator(asker(address, { host: 'localhost:8000' }), undefined)).not.toThrow();
  });

  it.each([
    ['another machine', asker('10.0.0.7', { host: 'localhost' })],
    ['a request passed on for another machine', asker('127.0.0.1', { host: 'localhost', 'x-forwarded-for': '203.0.113.9' })],
    ['a page of another name on this machine', asker('127.0.0.1', { host: 'evil.example:8000' })],
    ['a request that hides where it comes from', asker('127.0.0.1', { host: 'localhost', forwarded: 'for=unknown' })],
  ])('shows nothing to %s', (_name, request) => {
    expect(() => guardOperator(request, undefined)).toThrow(expect.objectContaining({ code: 'not_found' }));
  });

  it('lets a console on this machine ask on behalf of this machine', () => {
    expect(() => guardOperator(asker('127.0.0.1', { host: '127.0.0.1:8000', 'x-forwarded-for': '127.0.0.1' }), undefined)).not.toThrow();
  });
});

describe('guardOperator with a token', () => {
  it('admits every caller that has it, from any address', () => {
    expect(() => guardOperator(asker('10.0.0.7', { authorization: `Bearer ${token}` }), token)).not.toThrow();
  });

  it('refuses everyone else, this machine too', () => {
    expect(() => guardOperator(asker('127.0.0.1', { host: 'localhost' }), token)).toThrow(expect.objectContaining({ code: 'missing_key' }));
    expect(() => guardOperator(asker('127.0.0.1', { authorization: 'Bearer wrong' }), token)).toThrow(
      expect.objectContaining({ code: 'invalid_key' }),
    );
  });
});
