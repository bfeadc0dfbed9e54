import type OpenAI from 'openai';
import type { ModelMessage, ModelRequest, ModelTool } from '../model.ts';
import type { UsableModel } from '../providers.ts';

type Body = OpenAI.ChatCompletionCreateParamsStreaming;
type Message = OpenAI.ChatCompletionMessageParam;
type UserPart = OpenAI.ChatCompletionContentPartText | OpenAI.ChatCompletionContentPartImage;

/** Where the compatible servers part ways. */
export interface Dialect {
  /**
   * OpenAI's reasoning models refuse `max_tokens`; nearly everyone else knows only that, and Mistral answers 422 to the
   * other.
   */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** Mistral answers 422 to `stream_options` and sends usage without being asked. */
  readonly streamOptions: boolean;
  /** OpenAI routes by it to the machine that has the prompt cached; strict servers refuse unknown fields. */
  readonly promptCacheKey: boolean;
}

const compatible: Dialect = { maxTokensField: 'max_tokens', streamOptions: true, promptCacheKey: false };

export function findDialect(baseUrl: string): Dialect {
  const host = new URL(baseUrl).hostname;
  if (host === 'api.openai.com') return { maxTokensField: 'max_completion_tokens', streamOptions: true, promptCacheKey: true };
  if (host.endsWith('.openai.azure.com')) return { ...compatible, maxTokensField: 'max_completion_tokens' };
  if (host === 'api.mistral.ai') return { ...compatible, streamOptions: false };
  return compatible;
}

/** The body of one call. The same conversation gives the same bytes, so that prompt caches match. */
export function chatRequest(model: UsableModel, request: ModelRequest, dialect: Dialect = findDialect(model.provider.baseUrl)): Body {
  const messages = request.messages.flatMap((message) => toMessage(message, model.facts.images));
  return {
    model: model.name,
    messages: request.system === '' ? messages : [{ role: 'system', content: request.system.toWellFormed() }, ...messages],
    ...(request.tools.length > 0 ? { tools: request.tools.map(toTool) } : {}),
    // Defaults are guesses about a model without a description: an output limit above its own would be refused.
    ...(model.listed ? { [dialect.maxTokensField]: model.facts.maxOutputTokens } : {}),
    ...(dialect.promptCacheKey && request.conversationId !== undefined ? { prompt_cache_key: request.conversationId } : {}),
    ...(dialect.streamOptions ? { stream_options: { include_usage: true } } : {}),
    stream: true,
  };
}

function toMessage(message: ModelMessage, images: boolean): Message[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: toUserContent(message.content, images) }];
    case 'assistant':
      return toAssistantMessage(message);
    case 'tool':
      return [{ role: 'tool', tool_call_id: message.callId, content: message.output.toWellFormed() }];
  }
}

type UserContent = Extract<ModelMessage, { role: 'user' }>['content'];

// A lone surrogate is valid in JavaScript and in no provider's JSON: text is made well-formed on its way out.
function toUserContent(content: UserContent, images: boolean): string | UserPart[] {
  if (typeof content === 'string') return content.toWellFormed();
  return content.map((part): UserPart => {
    if (part.type === 'text') return { type: 'text', text: part.text.toWellFormed() };
    if (!images) return { type: 'text', text: '[An image was attached; this model cannot see images.]' };
    return { type: 'image_url', image_url: { url: `data:${part.mediaType};base64,${part.base64}` } };
  });
}

/** An assistant message without text and calls is refused by several providers and carries nothing: it is left out. */
function toAssistantMessage({ text, toolCalls }: Extract<ModelMessage, { role: 'assistant' }>): Message[] {
  if (toolCalls.length === 0) return text === '' ? [] : [{ role: 'assistant', content: text.toWellFormed() }];
  const calls = toolCalls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: toFunctionName(call.name), arguments: toArguments(call.arguments) },
  }));
  return [{ role: 'assistant', content: text === '' ? null : text.toWellFormed(), tool_calls: calls }];
}

/**
 * Models invent names such as `functions.read`; sent back as they are, OpenAI refuses the whole conversation from then
 * on.
 */
function toFunctionName(name: string): string {
  return name.replaceAll(/[^\w-]/gu, '_').slice(0, 64) || '_';
}

/**
 * vLLM and others parse the arguments of past calls and refuse what is no object; the tool's result explains what was
 * wrong with them.
 */
function toArguments(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? text.toWellFormed() : '{}';
  } catch {
    return '{}';
  }
}

function toTool({ name, description, parameters }: ModelTool): OpenAI.ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description, parameters: { ...parameters } } };
}
