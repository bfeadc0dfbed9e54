import type { IncomingMessage } from 'node:http';
import { pipeline, Transform, type Readable, type TransformCallback } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { OutboundError } from './outbound-error.ts';

/** What decoders must support at least (RFC 9659); the format itself allows windows of gigabytes. */
const ZSTD_WINDOW_LOG_MAX = 23;

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX } }),
};

/** Asked for unless the caller asks for something else. */
export const ACCEPTED_ENCODINGS = 'gzip, br, zstd';

class ByteCap extends Transform {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    super();
    this.#maxBytes = maxBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) done(tooLarge(this.#maxBytes));
    else done(null, chunk);
  }
}

/**
 * The body as it was before its encoding. At most `maxBytes` leave it, and at most as many are read from the network:
 * a bomb is noticed while it unfolds, a body that never unfolds is noticed as well.
 * @throws OutboundError for an encoding that is none of ours, or a declared length above the limit
 */
export function decodedBody(message: IncomingMessage, maxBytes: number): Readable {
  if (Number(message.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const encoding = (message.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding === 'identity' || encoding === '') return pipeline(message, new ByteCap(maxBytes), ignore);
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined;
  if (decoder === undefined) throw new OutboundError('bad_answer', 'The answer has an encoding that cannot be read.');
  return pipeline(message, new ByteCap(maxBytes), decoder(), new ByteCap(maxBytes), ignore);
}

function tooLarge(maxBytes: number): OutboundError {
  return new OutboundError('too_large', `The answer is larger than ${String(maxBytes)} bytes.`);
}

/** The reader of the last stream gets the error. */
function ignore(): void {}
