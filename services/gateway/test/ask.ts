import { Readable } from 'node:stream';
import supertest from 'supertest';

export interface PlainRequest {
  readonly method?: string | undefined;
  readonly headers?: Headers;
  readonly body?: string | undefined;
}

/** One request and its whole answer, through supertest: for all that is no stream. */
export async function askPlainly(url: string, path: string, { method = 'GET', headers, body }: PlainRequest): Promise<Response> {
  const answer = await new supertest.Test(url, method, path)
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
    })
    .send(body);
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
