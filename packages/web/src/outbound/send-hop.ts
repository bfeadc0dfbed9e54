import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import { ACCEPTED_ENCODINGS } from './decode-body.ts';
import { OutboundError } from './outbound-error.ts';
import { readHost, readPort, readOutboundUrl } from './outbound-url.ts';

const HEADERS_MAX_BYTES = 16 * 1024;
/** The time for each address of a host that has several; Node's quarter of a second gives up on distant hosts. */
const ADDRESS_ATTEMPT_MS = 1500;
const USER_AGENT = 'Mozilla/5.0 (compatible; Concierge/1.0)';

/** A connection serves one request: a connection that was vetted for another request is never reused. */
const agentOptions = { keepAlive: false, maxCachedSessions: 0 };

interface Agents {
  readonly 'http:': http.Agent;
  readonly 'https:': https.Agent;
}

/** Checks again the very address it connects to, as a second check. */
const guardedAgents: Agents = {
  'http:': new RequestFilteringHttpAgent(agentOptions),
  'https:': new RequestFilteringHttpsAgent(agentOptions),
};
/** For what the operator allowed by name. */
const openAgents: Agents = { 'http:': new http.Agent(agentOptions), 'https:': new https.Agent(agentOptions) };

/** One request to one vetted endpoint. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Uint8Array | undefined;
}

/** Where it may connect to: addresses that were looked up once, and looked at. */
export interface VettedEndpoint {
  readonly addresses: readonly string[];
  readonly isAllowedByOperator: boolean;
}

/**
 * Sends, and answers as soon as the head of an answer is there. No redirect is followed. Rejects with Node's errors.
 */
export async function sendHop(hop: Hop, endpoint: VettedEndpoint, signal: AbortSignal): Promise<IncomingMessage> {
  const isSecure = hop.url.protocol === 'https:';
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const agents = endpoint.isAllowedByOperator ? openAgents : guardedAgents;
  const options = {
    protocol: hop.url.protocol,
    hostname: readHost(hop.url),
    port: readPort(hop.url),
    path: `${hop.url.pathname}${hop.url.search}`,
    method: hop.method,
    headers: sentHeaders(hop),
    lookup: onlyThese(endpoint.addresses),
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    maxHeaderSize: HEADERS_MAX_BYTES,
    insecureHTTPParser: false,
    signal,
  };
  const request = isSecure
    ? https.request({ ...options, agent: agents['https:'], rejectUnauthorized: true })
    : http.request({ ...options, agent: agents['http:'] });
  request.once('response', (message) => {
    // The reader of the message gets its errors; there may be no reader yet, or none any more.
    message.on('error', () => {});
    resolve(message);
  });
  request.on('error', reject);
  // A server that switches protocols closes the request without a response.
  request.once('close', () => {
    reject(new OutboundError('bad_answer', `${hop.url.hostname} gave no HTTP answer.`));
  });
  request.end(hop.body);
  return promise;
}

/** The resolver of this connection: it knows the vetted addresses and nothing else. */
export function onlyThese(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (hostname, options, done) => {
    const wanted = options.family === 4 || options.family === 6 ? all.filter(({ family }) => family === options.family) : all;
    const [first] = wanted;
    if (first === undefined) done(Object.assign(new Error(`no address of ${hostname}`), { code: 'ENOTFOUND' }), '');
    else if (options.all === true) done(null, wanted);
    else done(null, first.address, first.family);
  };
}

/** The headers that control the connection are never the caller's: they may be a tenant's. */
const ownHeaders = /^(?:host|connection|keep-alive|transfer-encoding|content-length|te|trailer|upgrade|expect|http2-settings|proxy-.*)$/u;

function sentHeaders({ headers, body, method }: Hop): Record<string, string> {
  const sent: Record<string, string> = { 'user-agent': USER_AGENT, accept: '*/*', 'accept-encoding': ACCEPTED_ENCODINGS };
  for (const [name, value] of headers) if (!ownHeaders.test(name)) sent[name] = value;
  const length = body?.byteLength ?? 0;
  if (length > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH') sent['content-length'] = String(length);
  return sent;
}

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
