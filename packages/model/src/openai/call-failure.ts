import type { APIError } from 'openai';
import { z } from 'zod';
import { isFlagged, type ModelErrorKind } from '../model.ts';

/**
 * What may help: the same model again, another model and the same one only where there is no other, only another model,
 * or nothing.
 */
export type Remedy = 'retry' | 'elsewhere' | 'fallback' | 'none';

/** One attempt failed. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  readonly kind: ModelErrorKind;
  readonly remedy: Remedy;
  readonly status: number | undefined;
  /** What the provider calls it. */
  readonly code: string | undefined;
  /** The provider asked for this much patience. */
  readonly retryAfterMs: number | undefined;
  /** It may lie in what this one reply was to be, or in its prompt, and says nothing of the model's other replies. */
  readonly ofReply: boolean;

  constructor(verdict: Verdict, message: string, facts: FailureFacts = {}) {
    super(message, { cause: facts.cause });
    this.kind = verdict.kind;
    this.remedy = verdict.remedy;
    this.status = facts.status;
    this.code = facts.code;
    this.retryAfterMs = facts.retryAfterMs;
    this.ofReply = facts.ofReply === true;
  }
}

interface FailureFacts {
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly ofReply?: boolean;
  readonly cause?: unknown;
}

interface Verdict {
  readonly kind: ModelErrorKind;
  readonly remedy: Remedy;
}

const unavailable: Verdict = { kind: 'unavailable', remedy: 'retry' };
const rejected: Verdict = { kind: 'rejected', remedy: 'none' };
/** This provider will not serve us: key, credit, region, model name. Another may. */
const refusedHere: Verdict = { kind: 'rejected', remedy: 'fallback' };

const verdictByStatus: Readonly<Record<number, Verdict>> = {
  401: refusedHere,
  402: refusedHere,
  403: refusedHere,
  404: refusedHere,
  408: { kind: 'timeout', remedy: 'retry' },
  409: unavailable,
  425: unavailable,
  429: { kind: 'rate_limited', remedy: 'retry' },
  504: { kind: 'timeout', remedy: 'retry' },
};

/**
 * Codes that are more precise than their status (https://platform.openai.com/docs/guides/error-codes): used-up credit
 * comes as 429 and waiting does not bring it back; an unknown model may come as 400.
 */
const verdictByCode: Readonly<Record<string, Verdict>> = {
  insufficient_quota: refusedHere,
  billing_not_active: refusedHere,
  model_not_found: refusedHere,
  rate_limit_exceeded: { kind: 'rate_limited', remedy: 'retry' },
  server_error: unavailable,
  overloaded_error: unavailable,
};

/** The provider's stream did not keep to the protocol, or ended before the reply did. */
export function brokenStream(message: string, cause?: unknown): CallFailure {
  return new CallFailure(unavailable, message, { cause });
}

export function timedOut(message: string): CallFailure {
  return new CallFailure({ kind: 'timeout', remedy: 'retry' }, message);
}

/** The attempt has cost its user a long wait already, and would again. */
export function fellSilent(message: string, facts: Pick<FailureFacts, 'ofReply'>): CallFailure {
  return new CallFailure({ kind: 'timeout', remedy: 'elsewhere' }, message, facts);
}

/** The text exceeds any reply: the model or a proxy runs in circles, and would again. */
export function runawayReply(message: string): CallFailure {
  return new CallFailure(refusedHere, message);
}

/** Turns whatever an attempt threw into a failure; never throws. */
export function toCallFailure(error: unknown): CallFailure {
  if (error instanceof CallFailure) return error;
  if (isRefusal(error)) {
    const retryAfterMs = error.headers === undefined ? undefined : readRetryAfter(error.headers);
    const code = toCode(error.code, error) ?? findFlag(error.error) ?? error.type;
    return fromProvider({ status: error.status, code, message: error.message, retryAfterMs });
  }
  return new CallFailure(unavailable, error instanceof Error ? error.message : String(error), { cause: error });
}

/** The library hands on what the provider wrote: some write the status once more, as a number. */
function toCode(code: unknown, { status }: Pick<APIError, 'status'>): string | undefined {
  if (typeof code === 'string') return code;
  return typeof code === 'number' && code !== status ? String(code) : undefined;
}

/** So OpenRouter says that a prompt was flagged, with 403, which otherwise means the key (its page on errors). */
const Flagged = z.object({ metadata: z.object({ flagged_input: z.string() }) });

function findFlag(payload: unknown): string | undefined {
  return Flagged.safeParse(payload).success ? 'content_policy_violation' : undefined;
}

const ErrorPayload = z.object({
  message: z.string().optional().catch(undefined),
  code: z.union([z.string(), z.number()]).nullish().catch(null),
  type: z.string().nullish().catch(null),
});

/**
 * An `error` object in the middle of a stream: OpenRouter, vLLM and others report so what comes after the 200; `code`
 * may be a status.
 */
export function failureInStream(payload: unknown): CallFailure {
  const parsed = ErrorPayload.safeParse(payload);
  if (!parsed.success) return brokenStream(`the provider reported an error: ${JSON.stringify(payload).slice(0, 500)}`);
  const { message = 'the provider reported an error', code, type } = parsed.data;
  const status = typeof code === 'number' ? code : undefined;
  return fromProvider({ status, code: typeof code === 'string' ? code : (findFlag(payload) ?? type), message, retryAfterMs: undefined });
}

interface ProviderAnswer {
  readonly status: number | undefined;
  readonly code: string | null | undefined;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

function fromProvider({ status, code, message, retryAfterMs }: ProviderAnswer): CallFailure {
  const verdict = isRefusedAsTooLong({ status, code, message })
    ? ({ kind: 'context_overflow', remedy: 'none' } as const)
    : findVerdict(status, code);
  const facts = { status, code: code ?? undefined, retryAfterMs };
  return new CallFailure(verdict, message, { ...facts, ofReply: isFlagged(facts) });
}

function findVerdict(status: number | undefined, code: string | null | undefined): Verdict {
  if (typeof code === 'string' && Object.hasOwn(verdictByCode, code)) return verdictByCode[code] ?? unavailable;
  if (status === undefined || status >= 500) return (status === undefined ? undefined : verdictByStatus[status]) ?? unavailable;
  return verdictByStatus[status] ?? rejected;
}

/** `retry-after-ms` (OpenAI), or `Retry-After` in seconds or as a date (RFC 9110, 10.2.3). */
function readRetryAfter(headers: Headers): number | undefined {
  const milliseconds = Number(headers.get('retry-after-ms') ?? Number.NaN);
  if (milliseconds >= 0) return milliseconds;
  const header = headers.get('retry-after');
  if (header === null) return undefined;
  const waitMs = header.trim() !== '' && Number.isFinite(Number(header)) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined;
}

interface Refusal {
  readonly status: number | undefined;
  readonly code: string | null | undefined;
  readonly message: string;
}

/** OpenAI, Azure, Groq, DeepSeek: `context_length_exceeded`. llama.cpp's server: `exceed_context_size_error`. */
const codes = new Set(['context_length_exceeded', 'exceed_context_size_error', 'request_too_large', 'model_context_window_exceeded']);

/**
 * The one place that reads messages: most providers state it in words only, with status 400. As seen in their answers:
 * - OpenAI, OpenRouter, vLLM, DeepSeek: "This model's (endpoint's) maximum context length is 8192 tokens. However, …"
 * - OpenAI, newer models: "Your input exceeds the context window of this model", "Input tokens exceed the configured
 *   limit of …"
 * - Anthropic: "prompt is too long: 213462 tokens > 200000 maximum"
 * - Gemini: "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)"
 * - xAI: "This model's maximum prompt length is 131072 but the request contains 537812 tokens"
 * - Groq: "Please reduce the length of the messages or completion"
 * - Mistral: "Prompt contains 40000 tokens … too large for model with 32768 maximum context length"
 * - Bedrock: "Input is too long for requested model"
 * - vLLM: "The decoder prompt (length 9000) is longer than the maximum model length of 8192"
 * - llama.cpp: "the request exceeds the available context size"; LM Studio: "greater than the context length"
 * - Moonshot: "exceeded model token limit: 131072"
 */
const messages = [
  /maximum (?:context|prompt|model) length/iu,
  /exceeds? the (?:context window|available context size|maximum number of tokens|configured limit)/iu,
  /(?:prompt|input) is too long/iu,
  /reduce the length of the (?:messages|prompt|input)/iu,
  /greater than the context length/iu,
  /exceeded model token limit/iu,
];

/** Did the provider refuse because the prompt does not fit into the model's context? */
export function isRefusedAsTooLong({ status, code, message }: Refusal): boolean {
  if (typeof code === 'string' && codes.has(code)) return true;
  // Too large a body: with this client it is the conversation that is too large.
  if (status === 413) return true;
  if (status !== undefined && status !== 400 && status !== 422) return false;
  return messages.some((pattern) => pattern.test(message));
}

const refusals = new WeakSet<Error>();

/** Whether an error is a provider's answer, as the library reads it. */
function isRefusal(error: unknown): error is APIError {
  return error instanceof Error && refusals.has(error);
}

/**
 * As the library reads a refusal: `error` of the body, the body itself, or what is no JSON as the message. The library
 * is loaded with the first one: it is 230 files.
 */
export async function toRefusal(status: number, text: string, headers: Headers): Promise<APIError> {
  const { APIError: Refusal } = await import('openai');
  const json = parseObject(text);
  const body = json === undefined || ('error' in json && json.error != null) ? json : { error: json };
  const refusal = Refusal.generate(status, body, json === undefined ? text : undefined, headers);
  refusals.add(refusal);
  return refusal;
}

function parseObject(text: string): object | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}
