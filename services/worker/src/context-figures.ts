import { limitTokensOf, timestamp, usedTokens, type ContextBudget, type Conversation, type TurnStatus } from '@concierge/agent';
import type { AcceptedTurn, ModelFacts } from '@concierge/contract';
import { estimateTokens } from '@concierge/model';

/** What this model takes. `fixedPart` is the system prompt and the tools; estimated once, and only if the provider gives no figures. */
export function contextBudget(facts: ModelFacts, fixedPart: () => string): ContextBudget {
  let overhead: number | undefined;
  return {
    limitTokens: limitTokensOf(facts),
    overheadTokens: () => (overhead ??= estimateTokens(fixedPart())),
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
