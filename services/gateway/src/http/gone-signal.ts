import type { Response } from 'express';

/** Aborts when the client no longer waits for the answer. */
export function goneSignal(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort(new Error('the client has gone'));
  });
  return gone.signal;
}
