import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';
import { bearerToken } from './api-key.ts';

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
