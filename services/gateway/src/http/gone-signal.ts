import type { Response } from 'express';

/** Aborts when nobody waits for the answer any more. */
export function goneSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort(new Error('the client has gone'));
  });
  return gone.signal;
}
