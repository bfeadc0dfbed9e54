import {
  limitTokensOf,
  timestamp,
  usedTokens,
  type ContextBudget,
  type Conversation,
  type ToolSet,
  type TurnStatus,
} from '@concierge/agent';
import type { AcceptedTurn, ModelFacts } from '@concierge/contract';
import { estimateTokens } from '@concierge/model';

/** JSON schemas and English descriptions, at the dense end. */
const SCHEMA_CHARACTERS_PER_TOKEN = 4;

/** What this model takes. The system prompt is estimated once, and only if the provider has given no figures; tools by their length. */
export function contextBudget(facts: ModelFacts, system: string, tools: Pick<ToolSet, 'characters'>): ContextBudget {
  let systemTokens: number | undefined;
  return {
    limitTokens: limitTokensOf(facts),
    overheadCharacters: () => system.length + tools.characters,
    overheadTokens: () => (systemTokens ??= estimateTokens(system)) + Math.ceil(tools.characters / SCHEMA_CHARACTERS_PER_TOKEN),
    estimateTokens,
  };
}

export interface StatusFacts {
  readonly turn: Pick<AcceptedTurn, 'agent' | 'channel' | 'sessionId'>;
  readonly conversation: Conversation;
  readonly budget: ContextBudget;
  readonly model: { readonly ref: string; readonly facts: ModelFacts };
  readonly maxTurns: number;
  readonly timezone: string | undefined;
}

/** What the `status` tool tells, as it is when it is asked. */
export function turnStatus({ turn, conversation, budget, model, maxTurns, timezone }: StatusFacts): () => TurnStatus {
  return () => ({
    agent: turn.agent,
    channel: turn.channel,
    sessionId: turn.sessionId,
    time: timestamp(new Date(), timezone ?? 'UTC'),
    model: conversation.tally.models.at(-1)?.model ?? model.ref,
    contextTokens: usedTokens(conversation, budget),
    contextWindow: model.facts.contextWindow,
    messages: conversation.messageCount,
    compacted: conversation.summary !== null,
    turn: { modelCalls: conversation.replies, maxTurns, ...conversation.tally.usage },
  });
}
