import { Readable } from 'node:stream';
import supertest from 'supertest';

/** A part of a multipart body. */
export interface FilePart {
  readonly field?: string;
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly type?: string;
}

export interface PlainRequest {
  readonly method?: string | undefined;
  readonly headers?: Headers;
  /** Bytes go as they are. */
  readonly body?: string | Buffer | undefined;
  /** Instead of a body. */
  readonly files?: readonly FilePart[] | undefined;
}

/**
 * One request and its whole answer, through supertest: for all that is no stream. `TestGateway.open` uses fetch, which
 * hands over an answer when it begins; `raw-client.ts` uses a socket, for requests that no client sends.
 */
export async function askPlainly(
  url: string,
  path: string,
  { method = 'GET', headers, body, files = [] }: PlainRequest,
): Promise<Response> {
  const request = new supertest.Test(url, method, path)
    .set(Object.fromEntries(headers ?? []))
    .ok(() => true)
    .redirects(0)
    .buffer(true)
    // Its types show a finished answer here; what is given is the one that arrives.
    .parse((arriving: unknown, done) => {
      if (!(arriving instanceof Readable)) throw new TypeError('the answer is no stream');
      const pieces: Buffer[] = [];
      arriving.on('data', (piece: Buffer) => pieces.push(piece));
      arriving.once('end', () => done(null, Buffer.concat(pieces)));
    });
  for (const { field = 'file', bytes: content, name, type } of files) {
    request.attach(field, Buffer.from(content), type === undefined ? name : { filename: name, contentType: type });
  }
  // Sent as they are: bytes with the type JSON would be encoded as JSON again.
  if (Buffer.isBuffer(body)) request.serialize((bytes) => bytes);
  const answer = await (files.length > 0 ? request : request.send(body));
  const bytes: unknown = answer.body;
  // 204 and 304 have no body, not even an empty one.
  const text = Buffer.isBuffer(bytes) && bytes.length > 0 ? new Uint8Array(bytes) : null;
  return new Response(text, { status: answer.status, headers: toHeaders(answer.headers) });
}

function toHeaders(given: Readonly<Record<string, string | string[]>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) for (const one of [value].flat()) headers.append(name, one);
  return headers;
}
