import { z } from 'zod';
import type { TurnFailure } from './chat-turn.ts';

/** A problem document as far as the page needs it; codes may be newer than this page. */
const ProblemDocument = z.object({
  status: z.int(),
  code: z.string(),
  title: z.string().default(''),
  detail: z.string().default(''),
  requestId: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
});

export interface ChatFailureFacts {
  /** 0 when there was no answer at all. */
  readonly status: number;
  /** A code of the interface, or `unreachable` when there was no answer, or `unexpected_answer`. */
  readonly code: string;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** A request that did not succeed. `message` is what the service says happened. */
export class ChatFailure extends Error {
  override readonly name = 'ChatFailure';
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, requestId, retryAfterMs, cause }: ChatFailureFacts) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }

  /** The same request may succeed later, without anyone doing anything. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Reads the answer of a request that failed. */
export async function failureOf(response: Response): Promise<ChatFailure> {
  const body: unknown = await response.json().catch(() => null);
  const parsed = ProblemDocument.safeParse(body);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfter) ? retryAfter * 1000 : undefined;
  if (!parsed.success) {
    return new ChatFailure(`The service answered with status ${String(response.status)}.`, {
      status: response.status,
      code: 'unexpected_answer',
      retryAfterMs,
    });
  }
  const { detail, title, errors, code, requestId } = parsed.data;
  const fields = errors.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)).join('; ');
  const said = detail === '' ? title : detail;
  return new ChatFailure(fields === '' ? said : `${said} (${fields})`, { status: response.status, code, requestId, retryAfterMs });
}

/** Any thrown value as a failure that can be shown. */
export function toFailure(error: unknown): ChatFailure {
  if (error instanceof ChatFailure) return error;
  return new ChatFailure('The service cannot be reached.', { status: 0, code: 'unreachable', cause: error });
}

const advice: Readonly<Record<string, string>> = {
  missing_key: 'Sign in again.',
  invalid_key: 'Check that the whole key was pasted; it begins with ck_live_.',
  revoked_key: 'Ask for a new key and sign in with it.',
  scope_required: 'Sign in with a key whose scopes allow this.',
  tenant_suspended: 'Ask the people who operate the service.',
  too_many_waiting: 'Wait until some of the waiting messages have been answered.',
  rate_limited: 'Wait a while, then try again.',
  too_large: 'Send something smaller.',
  unsupported_media_type: 'Send a PNG, JPEG, GIF, WebP, PDF or text file.',
  not_found: 'It may have been deleted. Start a new conversation.',
  contact_mismatch: 'Start a new conversation for this contact.',
  provider_error: 'Try again in a moment.',
  turn_timeout: 'Try again, or ask for less at once.',
  unreachable: 'Check the connection, then try again.',
  overloaded: 'Try again in a moment.',
  shutting_down: 'Try again in a moment.',
};

/** What a person can do about it; empty when there is nothing better than trying again. */
function adviceFor(code: string): string {
  return advice[code] ?? '';
}

/** What happened and what to do about it, as sentences. */
export function explain({ code, message }: { readonly code: string; readonly message: string }): string {
  const happened = /[.!?…]$/u.test(message) ? message : `${message}.`;
  return `${happened} ${adviceFor(code)}`.trim();
}

export function turnFailureOf(failure: ChatFailure): TurnFailure {
  return { code: failure.code, message: failure.message, retryable: failure.isPassing || failure.status === 429 };
}
