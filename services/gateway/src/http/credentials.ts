import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';

const bearer = /^bearer +(?<token>\S+) *$/iu;

/**
 * The key of a request: `X-API-Key`, or `Authorization: Bearer`; both only when they agree.
 * @throws AppError `missing_key`, `invalid_key`
 */
export function readApiKey(headers: IncomingHttpHeaders): string {
  const plain = headers['x-api-key'];
  if (Array.isArray(plain)) throw new AppError('invalid_key', 'The request carries more than one key.');
  const token = bearerToken(headers);
  if (token === undefined) return present(plain);
  if (plain !== undefined && plain !== token) throw new AppError('invalid_key', 'The request carries two different keys.');
  return present(token);
}

/** The token of `Authorization: Bearer`. @throws AppError `invalid_key` for another scheme */
export function bearerToken({ authorization }: IncomingHttpHeaders): string | undefined {
  if (authorization === undefined) return undefined;
  const token = bearer.exec(authorization)?.groups?.['token'];
  if (token === undefined) throw new AppError('invalid_key', 'Authorization must read Bearer <key>.');
  return token;
}

function present(key: string | undefined): string {
  if (key === undefined || key === '') throw new AppError('missing_key');
  return key;
}

/** The parts of a request that are checked. */
export interface Asker {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

/** 127.0.0.0/8 and ::1, also when IPv4 is written as IPv6. */
function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/u.test(address);
}

/**
 * Whether a request comes from this machine, is not forwarded for another one, and names no foreign host (DNS
 * rebinding).
 */
function comesFromHere(request: Asker): boolean {
  if (!isLoopback(request.socket.remoteAddress)) return false;
  if (!loopbackHosts.has((request.headers.host ?? '').replace(/:\d+$/u, '').toLowerCase())) return false;
  if (request.headers.forwarded !== undefined) return false;
  const hops = request.headers['x-forwarded-for'];
  return hops === undefined || (typeof hops === 'string' && hops.split(',').every((hop) => isLoopback(hop.trim())));
}

/** Lets operators in: with the token where one is set, else on this machine only. @throws AppError */
export function guardOperator(request: Asker, opsToken: string | undefined): void {
  if (opsToken === undefined) {
    if (comesFromHere(request)) return;
    throw new AppError('not_found');
  }
  const given = bearerToken(request.headers);
  if (given === undefined) throw new AppError('missing_key', 'The operators\u2019 token is required.');
  if (!isSameSecret(given, opsToken)) throw new AppError('invalid_key', 'The operators\u2019 token is not valid.');
}
