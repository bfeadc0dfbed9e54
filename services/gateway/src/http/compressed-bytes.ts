import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, Response } from 'express';

const toGzip = promisify(gzip);
const toBrotli = promisify(brotliCompress);
/** The best level takes seconds of a processor for a large script. */
const LARGE_BYTES = 256 * 1024;

interface Variant {
  readonly bytes: Buffer;
  readonly etag: string;
}

export interface Sending {
  readonly type: string;
  readonly cacheControl: string;
}

/** What many ask for and nothing changes: compressed once, with a version that a browser can ask about. */
export class CompressedBytes {
  readonly #variants: Readonly<Record<'plain' | 'br' | 'gzip', Variant>>;

  private constructor(variants: Readonly<Record<'plain' | 'br' | 'gzip', Variant>>) {
    this.#variants = variants;
  }

  static async from(bytes: Buffer): Promise<CompressedBytes> {
    const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    const quality = bytes.length > LARGE_BYTES ? 6 : constants.BROTLI_MAX_QUALITY;
    const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    const [br, gzipped] = await Promise.all([toBrotli(bytes, { params }), toGzip(bytes)]);
    // An encoded form is other bytes, hence another strong tag.
    return new CompressedBytes({
      plain: { bytes, etag: `"${digest}"` },
      br: { bytes: br, etag: `"${digest}-br"` },
      gzip: { bytes: gzipped, etag: `"${digest}-gzip"` },
    });
  }

  send(request: Request, response: Response, { type, cacheControl }: Sending): void {
    const accepted = request.acceptsEncodings('br', 'gzip');
    const encoding = accepted === 'br' || accepted === 'gzip' ? accepted : undefined;
    const { bytes, etag } = this.#variants[encoding ?? 'plain'];
    response.setHeader('ETag', etag);
    response.setHeader('Cache-Control', cacheControl);
    response.vary('Accept-Encoding');
    if (request.headers['if-none-match'] === etag) {
      response.status(304).end();
      return;
    }
    if (encoding !== undefined) response.setHeader('Content-Encoding', encoding);
    response.setHeader('Content-Type', type);
    response.setHeader('Content-Length', bytes.length);
    response.status(200).end(request.method === 'HEAD' ? undefined : bytes);
  }
}
