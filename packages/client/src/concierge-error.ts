import { hasFields } from './has-fields.ts';

export interface ConciergeErrorFacts {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** A code of the interface, or `unreachable` (no answer), or `unexpected_answer` (no answer of Concierge). */
  readonly code: string;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** Statuses after which the same request may succeed; codes whose answer differs from that of their status. */
const retryableStatuses: ReadonlySet<number> = new Set([0, 408, 429, 500, 502, 503, 504]);
const exceptions: Readonly<Record<string, boolean>> = { session_busy: true, turn_crashed: false, budget_exceeded: false };

/** Answered by the infrastructure, or not at all: asking again a moment later is worth it. */
const transientStatuses: ReadonlySet<number> = new Set([0, 408, 502, 503, 504]);
/** Failures of a turn. Its answer is final: the same Idempotency-Key leads to it again. */
const turnFailures: ReadonlySet<string> = new Set(['provider_error', 'turn_timeout']);

/**
 * A request that did not succeed, from its problem document (RFC 9457). `message` is the service's description.
 */
export class ConciergeError extends Error {
  override readonly name = 'ConciergeError';
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  /** How long the service asks the client to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, requestId, retryAfterMs, cause }: ConciergeErrorFacts) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }

  /** The same request may succeed later. */
  get retryable(): boolean {
    return exceptions[this.code] ?? retryableStatuses.has(this.status);
  }

  /** The client asks again by itself: no answer, or one that is not about the request. */
  get isTransient(): boolean {
    return transientStatuses.has(this.status) && !turnFailures.has(this.code);
  }

  /** Reads the answer of a request that failed. */
  static async fromResponse(response: Response): Promise<ConciergeError> {
    const problem: unknown = await response.json().catch(() => null);
    const facts = { status: response.status, retryAfterMs: readRetryAfter(response.headers.get('retry-after'), Date.now()) };
    if (!hasFields<{ code: string }>(problem, { code: 'string' })) {
      return new ConciergeError(`The service answered with status ${String(response.status)}.`, { ...facts, code: 'unexpected_answer' });
    }
    return new ConciergeError(describe(problem), { ...facts, code: problem.code, requestId: readField(problem, 'requestId') });
  }

  /** Any thrown value as an error of this class: what is not one means that there was no answer. */
  static from(error: unknown): ConciergeError {
    if (error instanceof ConciergeError) return error;
    return new ConciergeError('The service cannot be reached.', { status: 0, code: 'unreachable', cause: error });
  }
}

/** `detail`, or else `title`, with the fields that are wrong. */
function describe(problem: object): string {
  const happened = readField(problem, 'detail') ?? readField(problem, 'title') ?? '';
  const errors: readonly unknown[] = 'errors' in problem && Array.isArray(problem.errors) ? problem.errors : [];
  const fields = errors
    .filter((error) => hasFields<{ path: string; message: string }>(error, { path: 'string', message: 'string' }))
    .map(({ path, message }) => `${path} ${message}`.trim());
  return fields.length === 0 ? happened : `${happened} (${fields.join('; ')})`;
}

/** A text that is not empty. */
function readField(problem: object, name: string): string | undefined {
  const value: unknown = new Map<string, unknown>(Object.entries(problem)).get(name);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Seconds or an HTTP date (RFC 9110, 10.2.3). */
export function readRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const delayMs = /^\d+$/u.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(delayMs) ? undefined : Math.max(0, delayMs);
}
