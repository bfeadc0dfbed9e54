/** Why nothing came back. Messages are fit for a tenant: what a private network looks like is never in them. */
export type OutboundFailure = 'bad_url' | 'not_public' | 'unreachable' | 'bad_answer' | 'too_large' | 'timed_out' | 'redirect_refused';

export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.failure = failure;
  }
}

/** Converts any error of a socket, a parser or a decoder to one of ours. */
export function toOutboundError(error: unknown, host: string): OutboundError {
  if (error instanceof OutboundError) return error;
  const code = readCode(error);
  if (
    /^(?:HPE_|Z_|ERR_ZLIB|ERR_BROTLI|ERR__ERROR|ERR_PADDING|ZSTD_|ERR_HTTP|ECONNRESET|ERR_STREAM_PREMATURE_CLOSE|ABORT_ERR)/u.test(code)
  ) {
    return new OutboundError('bad_answer', `${host} did not give a whole and valid HTTP answer (${code}).`, { cause: error });
  }
  return new OutboundError('unreachable', `${host} could not be reached (${code}).`, { cause: error });
}

function readCode(error: unknown): string {
  const given = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof given === 'string' ? given : 'unknown error';
}
