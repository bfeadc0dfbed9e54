import { AppError } from '@concierge/contract';
import type { IncomingHttpHeaders } from 'node:http';

const bearer = /^bearer +(?<token>\S+) *$/iu;

/**
 * The key of a request: `X-API-Key`, or `Authorization: Bearer`; both only when they agree.
 * @throws AppError `missing_key`, `invalid_key`
 */
export function apiKeyOf(headers: IncomingHttpHeaders): string {
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
