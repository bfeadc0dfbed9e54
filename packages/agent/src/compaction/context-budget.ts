import type { SessionMessage } from '@concierge/contract';
import type { Conversation } from '../loop/conversation.ts';
import { prunedNote } from '../loop/model-messages.ts';
import { sentText } from '../prompt/dynamic-context.ts';

/** How much a session may hold before it is made smaller. */
export interface ContextBudget {
  /** Tokens that prompt, tools and messages may use together: the context window without what the answer needs. */
  readonly limitTokens: number;
  /** Characters of the system prompt and the tool descriptions. */
  overheadCharacters(): number;
  /** The same in tokens, estimated; the provider's figures already include them. */
  overheadTokens(): number;
  estimateTokens(text: string): number;
}

/**
 * Messages and characters of a session file, whatever the model could take: every turn reads, writes and sends them
 * all.
 */
export const sessionBounds = { maxMessages: 240, keepMessages: 60, maxCharacters: 1_500_000 } as const;

/** What providers charge for a picture of common size. */
const IMAGE_TOKENS = 1100;
const MESSAGE_OVERHEAD_TOKENS = 6;
/** A token is at least one byte, and a UTF-16 unit at most three. */
const TOKENS_PER_CHARACTER_MAX = 3;

/**
 * False when the next call is far below the limit, whatever its text; most turns end here without an estimate.
 */
export function mayExceedLimit(conversation: Pick<Conversation, 'messages' | 'summary' | 'contextTokens'>, budget: ContextBudget): boolean {
  const counted = conversation.contextTokens;
  const since = conversation.messages.slice(counted?.messages ?? 0);
  const characters = since.reduce((sum, message) => sum + messageCharacters(message), 0);
  const images = since.reduce((sum, message) => sum + imagesOf(message), 0);
  const before = counted?.tokens ?? (budget.overheadCharacters() + summaryText(conversation).length) * TOKENS_PER_CHARACTER_MAX;
  return (
    before + characters * TOKENS_PER_CHARACTER_MAX + images * IMAGE_TOKENS + since.length * MESSAGE_OVERHEAD_TOKENS > budget.limitTokens
  );
}

/** Tokens of the next call: the provider's own count of the last one, and an estimate only for what has come since. */
export function usedTokens(conversation: Pick<Conversation, 'messages' | 'summary' | 'contextTokens'>, budget: ContextBudget): number {
  const counted = conversation.contextTokens;
  if (counted !== null && counted.messages <= conversation.messages.length) {
    return counted.tokens + sumOf(conversation.messages.slice(counted.messages), budget);
  }
  return budget.overheadTokens() + budget.estimateTokens(summaryText(conversation)) + sumOf(conversation.messages, budget);
}

/** One message as it will be sent. */
export function messageTokens(message: SessionMessage, budget: Pick<ContextBudget, 'estimateTokens'>): number {
  switch (message.role) {
    case 'user':
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(sentText(message)) + imagesOf(message) * IMAGE_TOKENS;
    case 'assistant': {
      const calls = message.toolCalls?.reduce((sum, call) => sum + budget.estimateTokens(call.arguments) + MESSAGE_OVERHEAD_TOKENS, 0) ?? 0;
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(message.text) + calls;
    }
    case 'tool': {
      const text = message.pruned === true ? prunedNote(message.output) : message.output;
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(text) + imagesOf(message) * IMAGE_TOKENS;
    }
  }
}

/** Characters that a message puts into the session file, roughly. */
export function messageCharacters(message: SessionMessage): number {
  switch (message.role) {
    case 'user':
      return message.text.length + message.sent.length + (message.heartbeat?.length ?? 0);
    case 'assistant':
      return message.text.length + (message.toolCalls?.reduce((sum, call) => sum + call.arguments.length, 0) ?? 0);
    case 'tool':
      return message.output.length;
  }
}

function summaryText({ summary }: Pick<Conversation, 'summary'>): string {
  return summary === null ? '' : summary.text + (summary.heartbeat ?? '');
}

function imagesOf(message: SessionMessage): number {
  if (message.role === 'assistant' || message.attachments === undefined) return 0;
  if (message.role === 'tool' && message.pruned === true) return 0;
  return message.attachments.filter((upload) => upload.type.startsWith('image/')).length;
}

function sumOf(messages: readonly SessionMessage[], budget: ContextBudget): number {
  return messages.reduce((sum, message) => sum + messageTokens(message, budget), 0);
}
