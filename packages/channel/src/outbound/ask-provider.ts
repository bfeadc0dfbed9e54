import { answerDeadline } from '@concierge/runtime';
import { z } from 'zod';
import { failed, retry, type SendOutcome } from './send-outcome.ts';

const ANSWER_TIMEOUT_MS = 30_000;

export interface ProviderRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent by POST, as JSON or as the form that it is; without one it is a GET. */
  readonly body?: unknown;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed JSON; undefined when it is none. */
  readonly body: unknown;
}

/** `never_left`: no connection, so nothing was done. `lost`: the request may have arrived, its answer did not. */
export type NoAnswer = { readonly failure: 'never_left' | 'lost'; readonly reason: string };

const jsonType = { 'content-type': 'application/json; charset=utf-8' };

/** Error codes of undici and the system that only occur before a request is on its way. */
const beforeSending: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

/**
 * One request, tried once. Redirects are not followed: a token goes to no place but the one it is for. Reasons hold no
 * address, because Telegram's has the token in it.
 * @throws the signal's reason when it was aborted before the request left
 */
export async function askProvider(request: ProviderRequest): Promise<ProviderAnswer | NoAnswer> {
  const { url, headers, body, signal, timeoutMs = ANSWER_TIMEOUT_MS } = request;
  const isForm = body instanceof URLSearchParams;
  signal.throwIfAborted();
  try {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { accept: 'application/json', ...headers, ...(body !== undefined && !isForm && jsonType) },
      ...(body !== undefined && { method: 'POST', body: isForm ? body : JSON.stringify(body) }),
      signal: AbortSignal.any([signal, answerDeadline(timeoutMs)]),
    });
    return { status: response.status, headers: response.headers, body: parseJsonBody(await response.text()) };
  } catch (error) {
    return toNoAnswer(error);
  }
}

function toNoAnswer(error: unknown): NoAnswer {
  const code = readErrorCode(error);
  if (beforeSending.has(code)) return { failure: 'never_left', reason: `The provider could not be reached (${code}).` };
  return { failure: 'lost', reason: `The provider's answer did not arrive (${code}).` };
}

/** Errors of `fetch` keep what happened in their cause; where several addresses were tried, in a list below that. */
const FetchError = z.object({
  name: z.string().optional(),
  cause: z
    .object({ code: z.string().optional(), errors: z.array(z.object({ code: z.string().optional() })).optional() })
    .optional()
    .catch(undefined),
});

function readErrorCode(error: unknown): string {
  const { name, cause } = FetchError.safeParse(error).data ?? {};
  return cause?.code ?? cause?.errors?.[0]?.code ?? name ?? 'unknown error';
}

function parseJsonBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The outcome of a send without an answer. */
export function classifyNoAnswer({ failure, reason }: NoAnswer): SendOutcome {
  if (failure === 'never_left') return retry({ code: 'unreachable', message: reason });
  return failed('unknown', { code: 'no_answer', message: `${reason} It may have been sent, so it is not sent again.` });
}

/** Answers of proxies and of providers that are down: classed by their status, since nothing else is known. */
export function classifyStatus({ status, headers }: ProviderAnswer): SendOutcome {
  const problem = { code: `http_${String(status)}`, message: `The provider answered with status ${String(status)}.` };
  if (status === 429 || status >= 500) return retry(problem, { afterMs: retryAfterMs(headers) });
  if (status >= 200 && status < 300)
    return failed('unknown', { ...problem, message: `${problem.message} Whether it was sent cannot be read from that.` });
  return failed('refused', problem);
}

/** The header in seconds; a date is no use between two clocks. */
export function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? '';
  return /^\d{1,7}$/u.test(value) ? Number(value) * 1000 : undefined;
}
