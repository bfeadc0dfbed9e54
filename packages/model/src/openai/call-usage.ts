import type { ModelFacts } from '@concierge/contract';
import { estimateTokens } from '../estimate-tokens.ts';
import type { ModelRequest } from '../model.ts';
import type { FinishedReply } from './reply.ts';

interface TokenCounts {
  /** All of the prompt, cached part included. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}

/** As the provider counted. */
export function countTokens(usage: NonNullable<FinishedReply['usage']>): TokenCounts {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0;
  return {
    inputTokens: Math.round(usage.prompt_tokens),
    outputTokens: Math.round(usage.completion_tokens),
    cachedInputTokens: Math.min(Math.round(cached), Math.round(usage.prompt_tokens)),
  };
}

/** For a provider that does not count. */
export function estimateUsage(request: ModelRequest, reply: FinishedReply): TokenCounts {
  const prompt = [request.system, ...request.messages.map(listWords)].join('\n');
  const said = [reply.text, ...reply.toolCalls.map((call) => call.name + call.arguments)].join('\n');
  const tools = request.tools.length > 0 ? JSON.stringify(request.tools) : '';
  return { inputTokens: estimateTokens(prompt) + estimateTokens(tools), outputTokens: estimateTokens(said), cachedInputTokens: 0 };
}

function listWords(message: ModelRequest['messages'][number]): string {
  switch (message.role) {
    case 'user':
      return typeof message.content === 'string'
        ? message.content
        : message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
    case 'assistant':
      return [message.text, ...message.toolCalls.map((call) => call.name + call.arguments)].join('\n');
    case 'tool':
      return message.output;
  }
}

/** US dollars of one call; null when the model has no price. Prices are per million tokens. */
export function costUsd(tokens: TokenCounts, price: ModelFacts['price']): number | null {
  if (price === undefined) return null;
  const fresh = Math.max(0, tokens.inputTokens - tokens.cachedInputTokens);
  const cached = tokens.cachedInputTokens * (price.cachedInput ?? price.input);
  return (fresh * price.input + cached + tokens.outputTokens * price.output) / 1_000_000;
}
