import type { ModelUsage, ToolCall } from '@concierge/contract';

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export interface ImagePart {
  readonly type: 'image';
  /** As in `image/png`. */
  readonly mediaType: string;
  readonly base64: string;
}

/** `model` wrote it; its thoughts and the extras of its calls are for that model alone. */
export interface AssistantModelMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly reasoning?: string | undefined;
  /** `provider/model`; undefined: unknown. */
  readonly model?: string | undefined;
}

export type ModelMessage =
  | { readonly role: 'user'; readonly content: string | readonly (TextPart | ImagePart)[] }
  | AssistantModelMessage
  | { readonly role: 'tool'; readonly callId: string; readonly output: string };

export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments: an object schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface ModelRequest {
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  /** The same for every call of one conversation: providers that cache prompts route by it. */
  readonly conversationId?: string;
  /** W3C Trace Context: sent to the provider, whose spans continue the turn's. */
  readonly traceparent?: string | undefined;
}

/**
 * Why a reply ended. `length`: cut, its tool calls may be torn and must not run. `tool_calls` exactly when there are
 * calls to run.
 */
export type ModelFinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter';

export interface ModelEnd {
  readonly type: 'end';
  /** The whole reply: the text since the start or since the last `reset`. */
  readonly text: string;
  /** In the model's order, ids unique within the reply; `arguments` as the model wrote them, perhaps no JSON at all. */
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: ModelFinishReason;
  /** Thoughts before the calls, where its provider wants them back; never shown to a client. */
  readonly reasoning?: string;
  /** Usage of the one call that answered. */
  readonly usage: ModelUsage;
  /** The provider gave no figures; `usage` is our own count. */
  readonly usageEstimated: boolean;
  /** `provider/model` that answered. */
  readonly model: string;
  /** Attempts that failed before it, of any model; missing: none. */
  readonly failedAttempts?: number;
}

/**
 * `text` deltas are never empty; what came in one piece from the provider is one event. `reset`: the text since the
 * start (or the last `reset`) is void and comes again, from the same model (`restarted`) or another (`fallback_model`).
 * `end` is last, exactly once.
 */
export type ModelEvent =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'reset'; readonly reason: 'fallback_model' | 'restarted' }
  | ModelEnd;

/** The port. Sides: a provider over HTTP, and whatever a test puts in its place. */
export interface Model {
  /**
   * One reply. Retries and fallbacks happen inside. Throws `ModelError` when all of them are used up, and the signal's
   * own reason, promptly, when it aborts. Leaving the iteration early ends the request.
   */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** Whether this is the error of a prompt that does not fit: made shorter, it may be asked again. */
  isContextOverflow(error: unknown): boolean;
}

/**
 * - `context_overflow`: the prompt does not fit; make it shorter and ask again.
 * - `rate_limited`, `unavailable`, `timeout`: the provider may answer later.
 * - `rejected`: the same request will be refused again (key, credit, model name, request itself).
 */
export type ModelErrorKind = 'context_overflow' | 'rate_limited' | 'unavailable' | 'rejected' | 'timeout';

export interface ModelErrorOptions {
  /** `provider/model` that failed last. */
  readonly model?: string | undefined;
  /** HTTP status of the provider's answer, when there was one. */
  readonly status?: number | undefined;
  /** What the provider calls the failure, as in `insufficient_quota`, when it names one. */
  readonly code?: string | undefined;
  /** It was called with the tenant's own key. */
  readonly ownKey?: boolean | undefined;
  readonly cause?: unknown;
}

/**
 * A reply could not be had, after retries and fallbacks. `message` is for operators: it may quote the provider and is
 * never shown to a client.
 */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: ModelErrorKind;
  readonly model: string | undefined;
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly ownKey: boolean;

  constructor(kind: ModelErrorKind, message: string, options: ModelErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.model = options.model;
    this.status = options.status;
    this.code = options.code;
    this.ownKey = options.ownKey === true;
  }
}

/** Providers' codes for a prompt that they do not answer for what is written in it. */
const flagCodes: ReadonlySet<string | undefined> = new Set(['content_filter', 'content_policy_violation', 'invalid_prompt']);

/** Whether a provider has refused what is written in one prompt, which says nothing of its model, its key or others. */
export function isFlagged({ code }: { readonly code?: string | undefined }): boolean {
  return flagCodes.has(code);
}

/** What `Model.isContextOverflow` answers for every model whose failures are a `ModelError`. */
export function isContextOverflow(error: unknown): boolean {
  return error instanceof ModelError && error.kind === 'context_overflow';
}
