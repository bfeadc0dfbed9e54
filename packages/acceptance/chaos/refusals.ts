import type { Evidence } from './audit/evidence.ts';

export interface RefusedRequest {
  readonly gateway: string;
  readonly response: Response;
  readonly method: string;
}

const UNAVAILABLE = 503;
const TOO_MANY = 429;

/** The two answers after which a client asks the same again. */
export function isLater(status: number): boolean {
  return status === UNAVAILABLE || status === TOO_MANY;
}

/**
 * What is expected while things break is 503 or 429 with a `Retry-After`; anything else is put on record.
 * @returns the answer's body
 */
export async function noteRefusal(
  { evidence, marker }: { readonly evidence: Pick<Evidence, 'refused'>; readonly marker: string },
  { gateway, response, method }: RefusedRequest,
): Promise<string> {
  const { status, headers, url } = response;
  const body = await response.text();
  if (isLater(status) && headers.has('retry-after')) return body;
  evidence.refused({
    marker,
    gateway,
    request: `${method} ${new URL(url).pathname}`,
    status,
    body: `${isLater(status) ? 'no Retry-After: ' : ''}${body.slice(0, 500)}`,
    atMs: Date.now(),
  });
  return body;
}
