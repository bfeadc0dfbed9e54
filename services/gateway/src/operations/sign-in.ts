import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { routes } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';
import type { Handlers } from '../http/call.ts';

const COOKIE = 'concierge_ops';
const LIFE_S = 12 * 3600;

/** The page has no script, and its one form goes to its own origin. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

function page(problem: string): string {
  const notice = problem === '' ? '' : `<p role="alert">${problem}</p>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Concierge · Operators</title>
<style>body{font:16px system-ui;max-width:22rem;margin:15vh auto;padding:0 1rem}input,button{font:inherit;width:100%;box-sizing:border-box;margin-top:.5rem;padding:.5rem}</style>
<h1>Operators</h1>
${notice}
<form method="post" action="${routes.signIn.path}">
<label>Operators’ token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Sign in</button>
</form>
</html>
`;
}

/** Exchanges the operators' token for a cookie, so that a browser can open the pages below /ops. */
export function signInHandlers({
  opsToken,
  now = Date.now,
}: {
  readonly opsToken: string | undefined;
  readonly now?: () => number;
}): Pick<Handlers, 'signInPage' | 'signIn'> {
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy };
  return {
    signInPage: () => ({ kind: 'answer', status: 200, text: page(''), headers }),
    signIn: ({ body, request }) => {
      const token = new URLSearchParams(body.toString('utf8')).get('token') ?? '';
      if (opsToken === undefined)
        return {
          kind: 'answer',
          status: 401,
          text: page('No OPS_TOKEN is set: /ops opens on this machine alone, without a sign-in.'),
          headers,
        };
      if (!isSameSecret(token, opsToken)) return { kind: 'answer', status: 401, text: page('That is not the token.'), headers };
      const secure = request.secure || request.headers['x-forwarded-proto'] === 'https' ? '; Secure' : '';
      const value = signCookie(opsToken, Math.floor(now() / 1000) + LIFE_S);
      const cookie = `${COOKIE}=${value}; Path=/ops; Max-Age=${String(LIFE_S)}; HttpOnly; SameSite=Strict${secure}`;
      return { kind: 'answer', status: 303, headers: { Location: routes.queues.path, 'Set-Cookie': cookie } };
    },
  };
}

/** The token itself is in no cookie, and another token ends every sign-in. */
export function signCookie(opsToken: string, untilS: number): string {
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
