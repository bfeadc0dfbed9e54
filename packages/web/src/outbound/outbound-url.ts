import { z } from 'zod';
import { OutboundError } from './outbound-error.ts';

const URL_MAX_CHARACTERS = 4096;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
const REGISTERED_PORTS_FROM = 1024;
/** Above 1023: ports that browsers refuse, and those of databases and brokers that execute any line they receive. */
const refusedPorts: ReadonlySet<number> = new Set([
  1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 6000, 6379, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 9042, 9092, 10080, 10250, 11211, 27017,
]);

/**
 * The one reading of an address that everything after uses: never the text again. A WHATWG URL has no decimal, octal or
 * hexadecimal host left, no full-width dots, no backslash, no zone.
 * @throws OutboundError `bad_url`
 */
export function readOutboundUrl(text: string, base?: URL): URL {
  if (text.length > URL_MAX_CHARACTERS) throw new OutboundError('bad_url', 'The address is too long.');
  const url = URL.parse(text, base?.href);
  if (url === null) throw new OutboundError('bad_url', 'This is no valid URL. Give an absolute one, as in https://example.com/page.');
  if (!(url.protocol in DEFAULT_PORTS)) throw new OutboundError('bad_url', 'Only http: and https: URLs can be opened.');
  if (url.username !== '' || url.password !== '') throw new OutboundError('bad_url', 'A URL with a user name or password is not opened.');
  // The same name to DNS, and the one that certificates and allow-lists are written for.
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1);
  if (url.hostname.endsWith('.') || url.hostname === '') throw new OutboundError('bad_url', 'The URL has no valid host.');
  url.hash = '';
  return url;
}

export function readPort(url: URL): number {
  return url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? 0) : Number(url.port);
}

/** A host as sockets and resolvers take it: IPv6 without its brackets. */
export function readHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/u, '$1');
}

/** Ports that serve HTTP: the two standard ones, and the unreserved ones. */
export function isWebPort(port: number): boolean {
  return Object.values(DEFAULT_PORTS).includes(port) || (port >= REGISTERED_PORTS_FROM && !refusedPorts.has(port));
}

/** `host:port` in the form in which URLs are compared with it. @throws Error for what is none */
export function readHostPort(entry: string): string {
  const url = /^[^/@?#\\\s]+:\d{1,5}$/u.test(entry) ? URL.parse(`http://${entry}`) : null;
  if (url === null) throw new Error(`"${entry}" is no host:port.`);
  return toHostPort(readOutboundUrl(url.href));
}

export function toHostPort(url: URL): string {
  return `${url.hostname}:${String(readPort(url))}`;
}

/**
 * The variable OUTBOUND_ALLOW: `host:port`s, parted by commas or spaces. The deployment's own: nothing of a tenant can
 * add to it.
 */
export const outboundAllow = z
  .string()
  .default('')
  .transform((text) => text.split(/[\s,]+/u).filter((entry) => entry !== ''))
  .pipe(z.array(z.string().refine(isHostPort, { error: 'must be a list of host:port' })));

function isHostPort(entry: string): boolean {
  try {
    return readHostPort(entry) !== '';
  } catch {
    return false;
  }
}
