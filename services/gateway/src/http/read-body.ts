import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import getRawBody from 'raw-body';
import { AppError, limits, type RouteBody } from '@concierge/contract';
import type { BodyRoom } from './body-budget.ts';
import { essenceOf } from './media-type.ts';
import { decodeText, parseJson } from './parse-json.ts';

type ReadableBody = Exclude<RouteBody, { readonly kind: 'files' }>;

/** Text files may come without a type, as `curl -T` sends them. */
const textTypes = /^(?:text\/[\w.+-]+|application\/(?:json|yaml|octet-stream))$/u;

/** Headers and boundaries of a multipart body, beside its files. */
const MULTIPART_MAX_BYTES = 64 * 1024;

function declaredBytes({ 'content-length': declared, 'transfer-encoding': encoding }: IncomingHttpHeaders): number | undefined {
  if (encoding !== undefined) return undefined;
  return Number(declared ?? 0);
}

/** Whether the rest of a request is worth closing its connection, rather than reading it to its end for nothing. */
export function mayBeLong({ headers }: Pick<Request, 'headers'>): boolean {
  return (declaredBytes(headers) ?? Infinity) > limits.jsonBodyMaxBytes;
}

function maxBytesOf(body: RouteBody): number {
  switch (body.kind) {
    case 'json': {
      return body.maxBytes ?? limits.jsonBodyMaxBytes;
    }
    case 'text':
    case 'raw': {
      return body.maxBytes;
    }
    case 'files': {
      return limits.uploadFilesMax * limits.uploadMaxBytes + MULTIPART_MAX_BYTES;
    }
  }
}

/**
 * Bytes of memory that the body may come to; a body that does not state its length may be as large as is allowed. Files
 * are not kept in memory.
 * @throws AppError `too_large` for a body that states a larger length: none of it is read
 */
export function bytesToExpect(body: RouteBody | undefined, { headers }: Pick<Request, 'headers'>): number {
  if (body === undefined) return 0;
  const maxBytes = maxBytesOf(body);
  const declared = declaredBytes(headers);
  if (declared !== undefined && declared > maxBytes) throw new AppError('too_large');
  return body.kind === 'files' ? 0 : (declared ?? maxBytes);
}

/**
 * Reads no further than `maxBytes`. Compressed bodies are refused.
 * @throws AppError `unsupported_media_type`; what raw-body throws
 */
async function readBytes(request: Request, maxBytes: number): Promise<Buffer> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') throw new AppError('unsupported_media_type', 'The content encoding is not supported.');
  return getRawBody(request, { limit: maxBytes, length: request.headers['content-length'] ?? null });
}

function requireType(request: Request, allowed: (essence: string) => boolean, hint: string): void {
  const given = request.headers['content-type'];
  const essence = given === undefined ? '' : essenceOf(given);
  if (essence === null || !allowed(essence)) throw new AppError('unsupported_media_type', `The Content-Type must be ${hint}.`);
}

/**
 * Reads the body as its route declares it: a parsed JSON value, a string, or bytes. Nothing is validated yet.
 * @throws AppError `unsupported_media_type`, `too_large`, `invalid_json`, `invalid_request`
 */
export async function readBody(request: Request, body: ReadableBody, room: BodyRoom): Promise<unknown> {
  const read = async (): Promise<Buffer> => {
    const bytes = await readBytes(request, maxBytesOf(body));
    room.shrinkTo(bytes.length);
    return bytes;
  };
  switch (body.kind) {
    case 'json': {
      const types = body.types ?? ['application/json'];
      requireType(request, (essence) => types.includes(essence), types.join(' or '));
      return parseJson(await read());
    }
    case 'text': {
      requireType(request, (essence) => essence === '' || textTypes.test(essence), 'text/*, or absent');
      return decodeText(await read(), 'invalid_request');
    }
    case 'raw': {
      return read();
    }
  }
}
