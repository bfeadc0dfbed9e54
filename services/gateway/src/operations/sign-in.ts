import { AppError, OperatorSignIn, routes } from '@concierge/contract';
import { isSameSecret, mayActByCookie } from '@concierge/runtime';
import type { Handlers } from '../http/call.ts';
import { buildOperatorCookie, buildSignedOutCookie } from '../http/operator-cookie.ts';

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

const noToken = 'No OPS_TOKEN is set: /ops opens on this machine alone, without a sign-in.';
const wrongToken = 'That is not the token.';

/** @throws AppError invalid_request */
function readToken(body: Buffer): string {
  const parsed = OperatorSignIn.safeParse(parseJson(body));
  if (parsed.success) return parsed.data.token;
  throw new AppError('invalid_request', 'The body must be JSON with the field token.', { cause: parsed.error });
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Exchanges the operators' token for a cookie, so that a browser can open the pages below /ops: by a form without a
 * script, or by the JSON of the console's own pages.
 */
export function signInHandlers({
  opsToken,
  now = Date.now,
}: {
  readonly opsToken: string | undefined;
  readonly now?: () => number;
}): Pick<Handlers, 'signInPage' | 'signIn' | 'signOut'> {
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy };
  return {
    signInPage: () => ({ kind: 'answer', status: 200, text: page(''), headers }),
    signIn: ({ body, request }) => {
      const isForm = request.is('json') === false;
      const token = isForm ? (new URLSearchParams(body.toString('utf8')).get('token') ?? '') : readToken(body);
      if (opsToken === undefined || !isSameSecret(token, opsToken)) {
        const problem = opsToken === undefined ? noToken : wrongToken;
        if (!isForm) throw new AppError(opsToken === undefined ? 'not_found' : 'invalid_key', problem);
        return { kind: 'answer', status: 401, text: page(problem), headers };
      }
      const cookie = { 'Set-Cookie': buildOperatorCookie(request, opsToken, now()) };
      if (!isForm) return { kind: 'answer', status: 204, headers: cookie };
      return { kind: 'answer', status: 303, headers: { Location: routes.queues.path, ...cookie } };
    },
    signOut: ({ request }) => {
      if (!mayActByCookie(request)) throw new AppError('invalid_request', 'Only a page of this service may sign out.');
      return { kind: 'answer', status: 204, headers: { 'Set-Cookie': buildSignedOutCookie(request) } };
    },
  };
}
