import type { IncomingMessage } from 'node:http';
import { OutboundError } from './outbound-error.ts';
import { readOutboundUrl } from './outbound-url.ts';
import type { Hop } from './send-hop.ts';

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The headers that another origin may see. Everything else may be a credential: tenants name headers as they like. */
const harmlessHeaders: ReadonlySet<string> = new Set(['accept', 'accept-language', 'accept-encoding', 'user-agent']);

/**
 * The request that a redirect asks for; undefined for an answer that is none.
 * @throws OutboundError for one that leads to what no URL may be, or would carry a body to another origin
 */
export function nextHop(hop: Hop, message: IncomingMessage): Hop | undefined {
  const { location } = message.headers;
  const status = message.statusCode ?? 0;
  if (!REDIRECTS.has(status) || location === undefined) return undefined;
  // Header bytes arrive one per character; an address outside ASCII is UTF-8.
  const url = readOutboundUrl(Buffer.from(location, 'latin1').toString('utf8'), hop.url);
  const isSameOrigin = url.origin === hop.url.origin;
  const becomesGet = (status === 303 && hop.method !== 'HEAD') || (status < 303 && hop.method === 'POST');
  const { method, body } = becomesGet ? { method: 'GET', body: undefined } : hop;
  if (body !== undefined && !isSameOrigin) {
    throw new OutboundError('redirect_refused', `${hop.url.hostname} redirects what was sent to ${url.hostname}. Use that address itself.`);
  }
  const headers = new Headers([...hop.headers].filter(([name]) => keeps(name, { isSameOrigin, becomesGet })));
  return { url, method, body, headers };
}

function keeps(name: string, { isSameOrigin, becomesGet }: { isSameOrigin: boolean; becomesGet: boolean }): boolean {
  if (becomesGet && name.startsWith('content-')) return false;
  return isSameOrigin || harmlessHeaders.has(name);
}
