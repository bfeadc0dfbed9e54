import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isSameSecret } from '@concierge/runtime';

const COOKIE = 'concierge_ops';
const LIFE_S = 12 * 3600;

/** A browser sends it below /ops alone, and no page of another site makes it do so. */
export function buildOperatorCookie(opsToken: string, nowMs: number): string {
  const value = signCookie(opsToken, Math.floor(nowMs / 1000) + LIFE_S);
  return `${COOKIE}=${value}; Path=/ops; Max-Age=${String(LIFE_S)}; HttpOnly; SameSite=Strict`;
}

/** The token itself is in no cookie, and another token ends every sign-in. */
function signCookie(opsToken: string, untilS: number): string {
  return `${String(untilS)}.${createHmac('sha256', opsToken)
    .update(`concierge ops cookie ${String(untilS)}`)
    .digest('hex')}`;
}

interface BrowserRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Whether a browser that has signed in sends this; what changes something must come from a page of ours. */
export function hasOperatorCookie({ method, headers }: BrowserRequest, opsToken: string, nowMs = Date.now()): boolean {
  const cookies = (headers.cookie ?? '').split('; ');
  const value = cookies.find((cookie) => cookie.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
  const given = /^(\d{1,12})\.([0-9a-f]{64})$/u.exec(value ?? '');
  if (given?.[1] === undefined) return false;
  const untilS = Number(given[1]);
  if (untilS * 1000 < nowMs || !isSameSecret(`${given[1]}.${given[2] ?? ''}`, signCookie(opsToken, untilS))) return false;
  const isReading = method === 'GET' || method === 'HEAD';
  return isReading || headers['sec-fetch-site'] === 'same-origin';
}
