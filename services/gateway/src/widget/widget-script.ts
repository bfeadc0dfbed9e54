import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import { AppError } from '@concierge/contract';

const compressions = { br: promisify(brotliCompress), gzip: promisify(gzip) } as const;

interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
}

interface LoadedScript {
  readonly plain: Variant;
  readonly br: Variant;
  readonly gzip: Variant;
}

/** The script of the web widget, as `packages/widget` was built. Read and compressed when it is first asked for. */
export class WidgetScript {
  readonly #file: URL;
  #loading: Promise<LoadedScript> | undefined;

  constructor(file: URL) {
    this.#file = file;
  }

  /** @throws AppError `overloaded` as long as it has not been built */
  async send(request: Request, response: Response): Promise<void> {
    const loaded = await this.#load();
    const encoding = request.acceptsEncodings('br', 'gzip');
    const { bytes, etag } = encoding === 'br' || encoding === 'gzip' ? loaded[encoding] : loaded.plain;
    response.setHeader('ETag', etag);
    response.setHeader('Cache-Control', 'public, max-age=300, stale-while-revalidate=86400');
    response.vary('Accept-Encoding');
    // For pages of every origin: it holds no secret, and does nothing without a key.
    response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
    response.setHeader('Access-Control-Allow-Origin', '*');
    if (request.headers['if-none-match'] === etag) {
      response.status(304).end();
      return;
    }
    if (encoding === 'br' || encoding === 'gzip') response.setHeader('Content-Encoding', encoding);
    response.setHeader('Content-Type', 'text/javascript; charset=utf-8');
    response.setHeader('Content-Length', bytes.length);
    response.status(200).end(request.method === 'HEAD' ? undefined : bytes);
  }

  async #load(): Promise<LoadedScript> {
    this.#loading ??= load(this.#file);
    try {
      return await this.#loading;
    } catch (error) {
      // It may be built while we run, as on a first start.
      this.#loading = undefined;
      throw new AppError('overloaded', 'The widget has not been built yet: run `node packages/widget/build.mjs`.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }
}

async function load(file: URL): Promise<LoadedScript> {
  const plain = await readFile(file);
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, 22);
  // An encoded form is other bytes, hence another strong tag.
  const variant = async (name: 'br' | 'gzip'): Promise<Variant> => ({
    bytes: await compressions[name](plain),
    etag: `"${digest}-${name}"`,
  });
  return { plain: { bytes: plain, etag: `"${digest}"` }, br: await variant('br'), gzip: await variant('gzip') };
}
