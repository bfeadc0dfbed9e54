import type { Request } from 'express';
import { AppError, limits, type Route } from '@concierge/contract';

/**
 * Memory for bodies that are larger than any JSON request of ours: so much of it at once and no more, however many come. What does not fit
 * is refused before it is read.
 */
export class LargeBodies {
  #held = 0;

  /** @throws AppError `overloaded`; whatever `work` throws */
  async run<Result>(route: Route, request: Pick<Request, 'headers'>, work: () => Promise<Result>): Promise<Result> {
    const bytes = bytesOf(route, request);
    if (bytes <= limits.jsonBodyMaxBytes) return work();
    if (this.#held + bytes > limits.largeBodiesMaxBytes)
      throw new AppError('overloaded', 'Too many large requests are being answered.', {
        retryAfterSeconds: 2,
        headers: { Connection: 'close' },
      });
    this.#held += bytes;
    try {
      return await work();
    } finally {
      this.#held -= bytes;
    }
  }
}

/** What the body may come to: one that does not say may be as large as is allowed. */
function bytesOf({ body }: Route, request: Pick<Request, 'headers'>): number {
  if (body?.kind !== 'json' || body.maxBytes === undefined) return 0;
  const declared = request.headers['content-length'];
  return declared === undefined ? body.maxBytes : Math.min(Number(declared), body.maxBytes);
}
