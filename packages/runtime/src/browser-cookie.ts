import type { IncomingHttpHeaders } from 'node:http';

/** A request of a browser, as far as its cookies are concerned. */
export interface BrowserRequest {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export interface CookieOptions {
  readonly name: string;
  /** Empty: the browser is to forget the cookie. */
  readonly value: string;
  readonly path: string;
  /** Seconds for which the browser keeps it. */
  readonly maxAgeS: number;
}

/**
 * A `Set-Cookie` header. No script reads the cookie, and no page of another site makes the browser send it. `Secure`
 * where the request came over HTTPS, to this process or to the proxy before it.
 */
export function buildCookie(request: BrowserRequest, { name, value, path, maxAgeS }: CookieOptions): string {
  const secure = isSecure(request) ? '; Secure' : '';
  return `${name}=${value}; Path=${path}; Max-Age=${String(maxAgeS)}; HttpOnly; SameSite=Strict${secure}`;
}

/** Whether the client's own connection is encrypted; what is before this process says so in `X-Forwarded-Proto`. */
export function isSecure({ headers }: BrowserRequest): boolean {
  return headers['x-forwarded-proto'] === 'https';
}

/** The value of a cookie; undefined where the browser sent none of this name. */
export function readCookie({ headers }: BrowserRequest, name: string): string | undefined {
  const cookies = (headers.cookie ?? '').split(/;\s*/u);
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** The header without the cookie of this name; undefined when nothing is left. */
export function omitCookie({ headers }: BrowserRequest, name: string): string | undefined {
  const others = (headers.cookie ?? '').split(/;\s*/u).filter((cookie) => cookie !== '' && !cookie.startsWith(`${name}=`));
  return others.length === 0 ? undefined : others.join('; ');
}

/**
 * Whether a request may do what it asks with nothing but a cookie: reading always, changing something only from a page
 * of ours. Browsers leave `Sec-Fetch-Site` out where the page came over plain HTTP from another machine; `Origin` and
 * the address that was asked say the same there.
 */
export function mayActByCookie({ method, headers }: BrowserRequest): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const host = headers['x-forwarded-host'] ?? headers.host;
  return typeof headers.origin === 'string' && URL.canParse(headers.origin) && new URL(headers.origin).host === host;
}
