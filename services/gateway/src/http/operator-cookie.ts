import { createHmac } from 'node:crypto';
import { buildCookie, isSameSecret, mayActByCookie, readCookie, type BrowserRequest } from '@concierge/runtime';

const COOKIE = { name: 'concierge_ops', path: '/ops' } as const;
const LIFE_S = 12 * 3600;

/** A browser sends it below /ops alone, and no page of another site makes it do so. */
export function buildOperatorCookie(request: BrowserRequest, opsToken: string, nowMs: number): string {
  const value = signCookie(opsToken, Math.floor(nowMs / 1000) + LIFE_S);
  return buildCookie(request, { ...COOKIE, value, maxAgeS: LIFE_S });
}

/** Has the browser forget its sign-in. */
export function buildSignedOutCookie(request: BrowserRequest): string {
  return buildCookie(request, { ...COOKIE, value: '', maxAgeS: 0 });
}

/** The token itself is in no cookie, and another token ends every sign-in. */
function signCookie(opsToken: string, untilS: number): string {
  return `${String(untilS)}.${createHmac('sha256', opsToken)
    .update(`concierge ops cookie ${String(untilS)}`)
    .digest('hex')}`;
}

/** Whether a browser that has signed in sends this; what changes something must come from a page of ours. */
export function hasOperatorCookie(request: BrowserRequest, opsToken: string, nowMs = Date.now()): boolean {
  const given = /^(\d{1,12})\.([0-9a-f]{64})$/u.exec(readCookie(request, COOKIE.name) ?? '');
  if (given?.[1] === undefined) return false;
  const untilS = Number(given[1]);
  if (untilS * 1000 < nowMs || !isSameSecret(`${given[1]}.${given[2] ?? ''}`, signCookie(opsToken, untilS))) return false;
  return mayActByCookie(request);
}
