import express, { type Request, type RequestHandler, type Response } from 'express';
import { AppError, limits, type RouteBody } from '@concierge/contract';
import { essenceOf } from './media-type.ts';
import { decodeText, parseJson } from './parse-json.ts';

type ReadableBody = Exclude<RouteBody, { readonly kind: 'files' }>;

/** Text files may come without a type, as `curl -T` sends them. */
const textTypes = /^(?:text\/[\w.+-]+|application\/(?:json|yaml|octet-stream))$/u;

/** One for each limit there is. */
const parsers = new Map<number, RequestHandler>();

/** Bytes of the body, never more than `maxBytes` of them. Compressed bodies are refused. @throws AppError `too_large` and others */
export async function readBytes(request: Request, response: Response, maxBytes: number): Promise<Buffer> {
  const read = parserOf(maxBytes);
  await new Promise<void>((resolve, reject) => {
    read(request, response, (error: unknown) => {
      if (error === undefined) resolve();
      else reject(error); // eslint-disable-line typescript/prefer-promise-reject-errors -- body-parser's own, translated by toAppError
    });
  });
  const body: unknown = request.body;
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

function parserOf(maxBytes: number): RequestHandler {
  const known = parsers.get(maxBytes);
  if (known !== undefined) return known;
  const parser = express.raw({ type: () => true, limit: maxBytes, inflate: false });
  parsers.set(maxBytes, parser);
  return parser;
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
export async function readBody(request: Request, response: Response, body: ReadableBody): Promise<unknown> {
  switch (body.kind) {
    case 'json': {
      const types = body.types ?? ['application/json'];
      requireType(request, (essence) => types.includes(essence), types.join(' or '));
      return parseJson(await readBytes(request, response, body.maxBytes ?? limits.jsonBodyMaxBytes));
    }
    case 'text': {
      requireType(request, (essence) => essence === '' || textTypes.test(essence), 'text/*, or absent');
      return decodeText(await readBytes(request, response, body.maxBytes), 'invalid_request');
    }
    case 'raw': {
      return readBytes(request, response, body.maxBytes);
    }
  }
}
