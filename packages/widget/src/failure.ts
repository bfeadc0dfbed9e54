import type { SaidProblem } from './read-json.ts';

/** Why something did not work, in words for the visitor. */
export class Failure extends Error {
  override readonly name = 'Failure';
  /** Worth trying again by itself. */
  readonly passes: boolean;
  readonly retryAfterMs: number | undefined;
  readonly code: string;

  constructor(message: string, facts: { readonly code: string; readonly passes: boolean; readonly retryAfterMs?: number | undefined }) {
    super(message);
    this.code = facts.code;
    this.passes = facts.passes;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

const words: Readonly<Record<string, string>> = {
  rate_limited: 'Too many messages in a short time. Please wait a moment.',
  too_many_waiting: 'Several of your messages are still waiting for an answer.',
  invalid_signature: 'Please sign in again to go on.',
  tenant_suspended: 'The chat is closed at the moment.',
  invalid_request: 'This message cannot be sent. It may be too long.',
  not_found: 'This answer is not there any more.',
  cancelled: 'Stopped.',
};

export function wordsFor(code: string): string {
  return words[code] ?? 'Something went wrong. Please try again.';
}

export function failureOf(status: number, { code }: SaidProblem, retryAfter: string | null): Failure {
  const passes = status === 408 || status === 503 || status === 502;
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  return new Failure(wordsFor(code), { code, passes, retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined });
}

export function toFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure('No connection. Please try again.', { code: 'no_connection', passes: true });
}
