import { z } from 'zod';
import { randomUUID } from 'node:crypto';

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const ToolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });
const Message = z.object({
  role: z.string(),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  tool_calls: z.array(ToolCall).optional(),
  tool_call_id: z.string().optional(),
});
export type CompletionMessage = z.infer<typeof Message>;

/** What the servers of this package read of a chat completion request; the rest is accepted and ignored. */
export const CompletionRequest = z.object({
  model: z.string(),
  messages: z.array(Message),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).optional(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
});
export type CompletionRequest = z.infer<typeof CompletionRequest>;

/** The words of a message; images and the like are passed over. */
export function readMessageText({ content }: CompletionMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}

/**
 * Where the user spoke last. A message that only shows what a tool has shown is sent in the user's name and is not the
 * user's.
 */
export function lastAsked(messages: readonly CompletionMessage[]): number {
  return messages.findLastIndex((message) => message.role === 'user' && !readMessageText(message).startsWith('[Shown by '));
}

export interface CompletionUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens?: number;
}

export interface CompletionToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, or what the test wants in its place. */
  readonly arguments: string;
  /** Sent as `extra_content`, as Google sends its signature. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' } as const;
export const streamEnd = 'data: [DONE]\n\n';

/**
 * Server-sent events of one streamed chat completion (https://platform.openai.com/docs/api-reference/chat-streaming).
 */
export class CompletionStream {
  readonly #head: string;

  constructor(model: string) {
    const created = Math.floor(Date.now() / 1000);
    this.#head = `data: {"id":"chatcmpl-${randomUUID()}","object":"chat.completion.chunk","created":${String(created)},"model":${JSON.stringify(model)},`;
  }

  role(): string {
    return this.#choice('{"role":"assistant","content":""}', null);
  }

  text(delta: string): string {
    return this.#choice(`{"content":${JSON.stringify(delta)}}`, null);
  }

  /** Split as providers split it: the name first, the arguments after it in two pieces. */
  toolCall(index: number, call: CompletionToolCall): string {
    const half = Math.ceil(call.arguments.length / 2);
    const extra = call.extra === undefined ? {} : { extra_content: call.extra };
    const opening = { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' }, ...extra };
    const pieces = [call.arguments.slice(0, half), call.arguments.slice(half)].filter((piece) => piece !== '');
    const deltas = [opening, ...pieces.map((piece) => ({ index, function: { arguments: piece } }))];
    return deltas.map((delta) => this.#choice(JSON.stringify({ tool_calls: [delta] }), null)).join('');
  }

  finish(reason: string): string {
    return this.#choice('{}', reason);
  }

  usage(usage: CompletionUsage): string {
    return `${this.#head}"choices":[],"usage":${JSON.stringify(usageObject(usage))}}\n\n`;
  }

  #choice(delta: string, finishReason: string | null): string {
    return `${this.#head}"choices":[{"index":0,"delta":${delta},"finish_reason":${JSON.stringify(finishReason)}}]}\n\n`;
  }
}

export interface WholeCompletion {
  readonly model: string;
  readonly text: string;
  readonly toolCalls: readonly CompletionToolCall[];
  readonly finishReason: string;
  readonly usage: CompletionUsage;
}

/** The same reply in one piece, for `stream: false`. */
export function wholeCompletion({ model, text, toolCalls, finishReason, usage }: WholeCompletion): Record<string, unknown> {
  const calls = toolCalls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }));
  const message = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  return {
    id: `chatcmpl-${randomUUID()}`,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{ index: 0, message, finish_reason: finishReason }],
    usage: usageObject(usage),
  };
}

function usageObject({ promptTokens, completionTokens, cachedTokens = 0 }: CompletionUsage): Record<string, unknown> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}
