import { routes } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';
import type { Handlers } from '../http/call.ts';
import { buildOperatorCookie } from '../http/operator-cookie.ts';

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
      const cookie = `${buildOperatorCookie(opsToken, now())}${secure}`;
      return { kind: 'answer', status: 303, headers: { Location: routes.queues.path, 'Set-Cookie': cookie } };
    },
  };
}
