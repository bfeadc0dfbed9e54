import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** Meant for one connection, not for what lies behind it (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

function endToEnd(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  const kept = Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.includes(name));
  return Object.fromEntries(kept);
}

/** Headers for the gateway: end-to-end ones as they came, and who really asked. */
export function requestHeaders(request: IncomingMessage, gateway: URL): OutgoingHttpHeaders {
  const { expect: _answeredHere, ...headers } = endToEnd(request.headers);
  const before = request.headers['x-forwarded-for'];
  const client = request.socket.remoteAddress ?? '';
  return {
    ...headers,
    host: gateway.host,
    'x-forwarded-for': before === undefined ? client : `${String(before)}, ${client}`,
    'x-forwarded-host': request.headers.host ?? '',
    'x-forwarded-proto': 'http',
    // A body without a length stays one: node would otherwise send a DELETE's body unframed.
    ...(request.headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' }),
  };
}

/** Headers for the browser. */
export function responseHeaders(answer: IncomingMessage): OutgoingHttpHeaders {
  return endToEnd(answer.headers);
}
