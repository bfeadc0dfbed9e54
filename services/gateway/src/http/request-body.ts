import type { IncomingHttpHeaders } from 'node:http';
import { AppError, limits, type RouteBody } from '@concierge/contract';
import type { Request } from 'express';
import getRawBody from 'raw-body';
import { SharedCounts } from '../processes/shared-counts.ts';
import type { Siblings } from '../processes/siblings.ts';

/** Room for one body. Disposing it returns the room. */
export interface BodyRoom extends Disposable {
  /**
   * Undefined when this process alone decides about the room. Else to be awaited before the body is read; @throws
   * AppError `overloaded` when other processes have taken the room at the same time
   */
  agree(): Promise<void> | undefined;
  /** The body is read and has so many bytes. */
  shrinkTo(bytes: number): void;
}

interface Pool {
  readonly counts: SharedCounts;
  readonly maxBytes: number;
  readonly maxBytesOfPeer: number;
}

/**
 * Limits the memory for request bodies, in total and for each peer. A body that does not fit is refused before it is
 * read. Bodies larger than any JSON request of ours have a separate pool, so that they never take the place of a chat
 * message. That pool is one for all processes, as their shares of it might be smaller than one body; of the other one
 * each process has its share, so that no small request waits for others.
 */
export class BodyBudget {
  readonly #small: Pool;
  readonly #large: Pool;

  /** `siblings`: the other processes of this gateway; left out where there are none. */
  constructor(siblings?: Pick<Siblings, 'counts' | 'share'>) {
    const { counts = new SharedCounts(), share = (whole: number): number => whole } = siblings ?? {};
    const { bodiesMaxBytes, bodiesOfPeerMaxBytes } = limits;
    this.#small = { counts: new SharedCounts(), maxBytes: share(bodiesMaxBytes), maxBytesOfPeer: share(bodiesOfPeerMaxBytes) };
    this.#large = { counts, maxBytes: bodiesMaxBytes, maxBytesOfPeer: bodiesOfPeerMaxBytes };
  }

  /** @throws AppError `overloaded` */
  reserve(peer: string, bytes: number): BodyRoom {
    const { counts, maxBytes, maxBytesOfPeer } = bytes > limits.jsonBodyMaxBytes ? this.#large : this.#small;
    const nameOfPeer = `bodies/${peer}`;
    const assertFits = (more: number): void => {
      if (counts.total('bodies') + more > maxBytes || counts.total(nameOfPeer) + more > maxBytesOfPeer) throw tooManyBodies();
    };
    assertFits(bytes);
    let held = 0;
    const hold = (next: number): void => {
      const change = next - held;
      held = next;
      counts.add('bodies', change);
      counts.add(nameOfPeer, change);
    };
    hold(bytes);
    return {
      agree: () => (counts.isShared ? counts.agree().then(() => assertFits(0)) : undefined),
      shrinkTo: (read) => {
        hold(Math.min(held, read));
      },
      [Symbol.dispose]: () => {
        hold(0);
      },
    };
  }
}

function tooManyBodies(): AppError {
  return new AppError('overloaded', 'Too many large requests are being answered.', {
    retryAfterSeconds: 2,
    headers: { Connection: 'close' },
  });
}

type ReadableBody = Exclude<RouteBody, { readonly kind: 'files' | 'stream' }>;

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

function findMaxBytes(body: RouteBody): number {
  switch (body.kind) {
    case 'json': {
      return body.maxBytes ?? limits.jsonBodyMaxBytes;
    }
    case 'text':
    case 'raw':
    case 'stream': {
      return body.maxBytes;
    }
    case 'files': {
      return limits.uploadFilesMax * limits.uploadMaxBytes + MULTIPART_MAX_BYTES;
    }
  }
}

/**
 * Bytes of memory that the body may come to; a body that does not state its length may be as large as is allowed. Files
 * and streams are not kept in memory.
 * @throws AppError `too_large` for a body that states a larger length: none of it is read
 */
export function bytesToExpect(body: RouteBody | undefined, { headers }: Pick<Request, 'headers'>): number {
  if (body === undefined) return 0;
  const maxBytes = findMaxBytes(body);
  const declared = declaredBytes(headers);
  if (declared !== undefined && declared > maxBytes) throw new AppError('too_large');
  return body.kind === 'files' || body.kind === 'stream' ? 0 : (declared ?? maxBytes);
}

/**
 * Reads no further than `maxBytes`. Compressed bodies are refused.
 * @throws AppError `unsupported_media_type`; what raw-body throws
 */
async function readBytes(request: Request, maxBytes: number, room: BodyRoom): Promise<Buffer> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') throw new AppError('unsupported_media_type', 'The content encoding is not supported.');
  const bytes = await getRawBody(request, { limit: maxBytes, length: request.headers['content-length'] ?? null });
  room.shrinkTo(bytes.length);
  return bytes;
}

/** For a body that its handler reads. @throws AppError `unsupported_media_type` */
export function requireStreamType(request: Request, { types }: Extract<RouteBody, { readonly kind: 'stream' }>): void {
  requireType(request, (essence) => types.includes(essence), types.join(' or '));
}

function requireType(request: Request, allowed: (essence: string) => boolean, hint: string): void {
  const given = request.headers['content-type'];
  const essence = given === undefined ? '' : readMediaType(given);
  if (essence === null || !allowed(essence)) throw new AppError('unsupported_media_type', `The Content-Type must be ${hint}.`);
}

/**
 * Reads the body as its route declares it: a parsed JSON value, a string, or bytes. Nothing is validated yet.
 * @throws AppError `unsupported_media_type`, `too_large`, `invalid_json`, `invalid_request`
 */
export async function readBody(request: Request, body: ReadableBody, room: BodyRoom): Promise<unknown> {
  switch (body.kind) {
    case 'json': {
      const types = body.types ?? ['application/json'];
      requireType(request, (essence) => types.includes(essence), types.join(' or '));
      return parseJson(await readBytes(request, findMaxBytes(body), room));
    }
    case 'text': {
      requireType(request, (essence) => essence === '' || textTypes.test(essence), 'text/*, or absent');
      return decodeText(await readBytes(request, body.maxBytes, room), 'invalid_request');
    }
    case 'raw': {
      return readBytes(request, body.maxBytes, room);
    }
  }
}

/**
 * The essence of a Content-Type (`application/json`), lower case.
 * @returns null when its charset is another than UTF-8: nothing else is read here
 */
function readMediaType(contentType: string): string | null {
  const [essence = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  return charset === undefined || charset === 'utf-8' || charset === 'utf8' || charset === 'us-ascii' ? essence : null;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Strict UTF-8, the byte order mark kept. @throws AppError of `code` */
function decodeText(bytes: Uint8Array, code: 'invalid_json' | 'invalid_request'): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    throw new AppError(code, 'The body is not valid UTF-8.', { cause: error });
  }
}

/**
 * JSON as a client may send it: strict UTF-8, at most limits.jsonMaxDepth deep and of limits.jsonMaxValues values,
 * every string well-formed (a lone surrogate would be another string once it is written as UTF-8).
 * @throws AppError `invalid_json`
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decodeText(bytes, 'invalid_json');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new AppError('invalid_json', undefined, { cause: error });
  }
  new Walk().visit(value, limits.jsonMaxDepth);
  return value;
}

/**
 * A walk over a value that counts: schemas make an issue for each value that is wrong, so there may be only so many.
 */
class Walk {
  #left: number = limits.jsonMaxValues;

  visit(value: unknown, levels: number): void {
    this.#left -= 1;
    if (this.#left < 0) throw new AppError('invalid_json', `The body has more than ${String(limits.jsonMaxValues)} values.`);
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw new AppError('invalid_json', 'A string has half of a surrogate pair.');
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    if (levels === 0) throw new AppError('invalid_json', `The body is nested deeper than ${String(limits.jsonMaxDepth)} levels.`);
    if (Array.isArray(value)) {
      for (const item of value) this.visit(item, levels - 1);
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      if (!key.isWellFormed()) throw new AppError('invalid_json', 'A name has half of a surrogate pair.');
      this.visit(item, levels - 1);
    }
  }
}
