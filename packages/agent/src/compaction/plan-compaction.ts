import type { SessionMessage } from '@concierge/contract';
import type { Conversation } from '../loop/conversation.ts';
import {
  countCharacters,
  countImages,
  IMAGE_TOKENS,
  MESSAGE_OVERHEAD_TOKENS,
  prunedNote,
  sessionBounds,
  writeSummary,
  type ContextBudget,
  type CountedConversation,
} from '../loop/model-messages.ts';
import { sentText } from '../prompt/user-message.ts';

/** Tokens of the next call: the provider's own count of the last one, and an estimate only for what has come since. */
export function usedTokens(conversation: CountedConversation, budget: ContextBudget): number {
  const counted = conversation.contextTokens;
  if (counted !== null && counted.messages <= conversation.messages.length) {
    return counted.tokens + sumTokens(conversation.messages.slice(counted.messages), budget);
  }
  return budget.overheadTokens() + budget.estimateTokens(writeSummary(conversation)) + sumTokens(conversation.messages, budget);
}

/** One message as it will be sent. */
export function messageTokens(message: SessionMessage, budget: Pick<ContextBudget, 'estimateTokens'>): number {
  switch (message.role) {
    case 'user':
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(sentText(message)) + countImages(message) * IMAGE_TOKENS;
    case 'assistant': {
      const calls = message.toolCalls?.reduce((sum, call) => sum + budget.estimateTokens(call.arguments) + MESSAGE_OVERHEAD_TOKENS, 0) ?? 0;
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(message.text + (message.reasoning ?? '')) + calls;
    }
    case 'tool': {
      const text = message.pruned === true ? prunedNote(message.output) : message.output;
      return MESSAGE_OVERHEAD_TOKENS + budget.estimateTokens(text) + countImages(message) * IMAGE_TOKENS;
    }
  }
}

function sumTokens(messages: readonly SessionMessage[], budget: ContextBudget): number {
  return messages.reduce((sum, message) => sum + messageTokens(message, budget), 0);
}

export interface CompactionPlan {
  /** Old tool results that the model will see as a note only. */
  readonly prunedIds: readonly string[];
  /** How many messages from the front are summarised and moved to the history; 0: none. */
  readonly cut: number;
}

/**
 * Why a conversation is made smaller: the window is nearly full, the provider has refused it, or the file has grown
 * long.
 */
export type CompactionNeed = 'tokens' | 'overflowed' | 'bounds';

type Subject = Pick<Conversation, 'messages' | 'summary' | 'contextTokens' | 'replies'>;

/** A tool result that is shorter than this is not worth a note. */
const PRUNE_MIN_CHARACTERS = 600;
/** Newest tool results that stay as they are, as a share of the limit. */
const PROTECTED_SHARE = { tokens: 0.2, overflowed: 0.04, bounds: 1 } as const;
/** Use after pruning, as a share of the limit, at which nothing needs to be summarised. */
const ENOUGH_SHARE = 0.6;
/** Use after summarising, as a share of the limit. */
const TARGET_SHARE = 0.4;
/** A last exchange that alone takes more than this is cut in its middle. */
const WHOLE_EXCHANGE_SHARE = 0.8;
const SUMMARY_TOKENS = 2500;
const SUMMARY_SHARE_MAX = 0.1;

/** Null when there is room. Length is looked at once per turn, tokens before every call. */
export function compactionNeed(conversation: Subject, budget: ContextBudget): CompactionNeed | null {
  if (usedTokens(conversation, budget) > budget.limitTokens) return 'tokens';
  const { messages, replies } = conversation;
  if (replies > 0) return null;
  if (messages.length > sessionBounds.maxMessages) return 'bounds';
  return messages.reduce((sum, message) => sum + countCharacters(message), 0) > sessionBounds.maxCharacters ? 'bounds' : null;
}

/**
 * Prunes old tool results first and, if that is not enough, summarises the oldest exchanges. Null when nothing can be
 * made smaller.
 */
export function planCompaction(conversation: Subject, budget: ContextBudget, need: CompactionNeed): CompactionPlan | null {
  // A provider that refuses less than the limit has a smaller window than its configuration states.
  const used = usedTokens(conversation, budget);
  const limit = need === 'overflowed' ? Math.min(budget.limitTokens, used) : budget.limitTokens;
  const pruned = need === 'bounds' ? new Map<string, number>() : pruneable(conversation.messages, budget, limit * PROTECTED_SHARE[need]);
  const saved = [...pruned.values()].reduce((sum, tokens) => sum + tokens, 0);
  const isEnough = need !== 'bounds' && pruned.size > 0 && used - saved <= limit * ENOUGH_SHARE;
  const sizes = conversation.messages.map((message) => messageTokens(message, budget) - (pruned.get(message.id) ?? 0));
  const cut = isEnough ? 0 : cutAt(conversation.messages, sizes, { limit, overhead: budget.overheadTokens() });
  return cut === 0 && pruned.size === 0 ? null : { prunedIds: [...pruned.keys()], cut };
}

/** Tool results older than the newest `protectedTokens`, with what each would save. */
function pruneable(messages: readonly SessionMessage[], budget: ContextBudget, protectedTokens: number): Map<string, number> {
  const saves = new Map<string, number>();
  let seen = 0;
  for (const message of messages.toReversed()) {
    if (message.role !== 'tool' || message.pruned === true) continue;
    const tokens = messageTokens(message, budget);
    seen += tokens;
    if (seen <= protectedTokens || (message.output.length < PRUNE_MIN_CHARACTERS && message.attachments === undefined)) continue;
    saves.set(message.id, tokens - messageTokens({ ...message, pruned: true }, budget));
  }
  return saves;
}

/**
 * Where the kept part begins: at a user message, as early as fits; else at the last one; else, when that exchange alone
 * is too much, at a reply inside it. Results follow their calls, so no place before a user message or a reply parts
 * them.
 */
function cutAt(messages: readonly SessionMessage[], sizes: readonly number[], room: { limit: number; overhead: number }): number {
  const target = Math.max(0, room.limit * TARGET_SHARE - room.overhead - Math.min(SUMMARY_TOKENS, room.limit * SUMMARY_SHARE_MAX));
  const earliest = Math.max(1, earliestThatFits(sizes, target), messages.length - sessionBounds.keepMessages);
  const exchange = messages.findIndex((message, index) => index >= earliest && message.role === 'user');
  if (exchange > 0) return exchange;
  const lastUser = messages.findLastIndex((message) => message.role === 'user');
  const lastExchange = sizes.slice(Math.max(0, lastUser)).reduce((sum, size) => sum + size, 0);
  if (lastUser > 0 && lastExchange <= room.limit * WHOLE_EXCHANGE_SHARE - room.overhead) return lastUser;
  const reply = messages.findIndex((message, index) => index >= earliest && message.role === 'assistant');
  if (reply > 0) return reply;
  // Not even one round fits: the newest alone is the least that can be kept.
  return Math.max(
    0,
    messages.findLastIndex((message) => message.role !== 'tool'),
  );
}

/** The first index from which on everything together takes at most `target`. */
function earliestThatFits(sizes: readonly number[], target: number): number {
  let kept = 0;
  for (let index = sizes.length - 1; index >= 0; index -= 1) {
    kept += sizes[index] ?? 0;
    if (kept > target) return index + 1;
  }
  return 0;
}
