import { describe, expect, it } from '@jest/globals';
import { buildOperatorCookie, hasOperatorCookie } from './operator-cookie.ts';

const token = 'operators-token';
const nowMs = Date.parse('2026-11-24T12:00:00Z');
const cookie = `other=1; ${buildOperatorCookie({ headers: {} }, token, nowMs).split(';', 1)[0] ?? ''}`;

describe('the cookie of operators', () => {
  it('lets reading requests in until its time is over, and only with the token that it was made of', () => {
    const request = { method: 'GET', headers: { cookie } };
    expect(hasOperatorCookie(request, token, nowMs)).toBe(true);
    expect(hasOperatorCookie(request, token, nowMs + 13 * 3600_000)).toBe(false);
    expect(hasOperatorCookie(request, 'another-token', nowMs)).toBe(false);
    expect(hasOperatorCookie({ method: 'GET', headers: {} }, token, nowMs)).toBe(false);
  });

  it('lets changes in only from pages of the same origin', () => {
    expect(hasOperatorCookie({ method: 'POST', headers: { cookie } }, token, nowMs)).toBe(false);
    expect(hasOperatorCookie({ method: 'POST', headers: { cookie, 'sec-fetch-site': 'cross-site' } }, token, nowMs)).toBe(false);
    expect(hasOperatorCookie({ method: 'POST', headers: { cookie, 'sec-fetch-site': 'same-origin' } }, token, nowMs)).toBe(true);
  });
});
