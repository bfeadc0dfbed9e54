import { allTools, timestamp, ToolRegistry, usedTokens, type ContextBudget, type Conversation, type TurnStatus } from '@concierge/agent';
import { countLimitTokens, overheadShareMax, type AcceptedTurn, type ModelFacts } from '@concierge/contract';
import { estimateTokens, findModel, type Providers } from '@concierge/model';

/** JSON schemas and English descriptions, at the dense end. */
const SCHEMA_CHARACTERS_PER_TOKEN = 4;

/**
 * How much this model takes. The system prompt is estimated once, and only if the provider has given no figures; tools
 * by their length.
 */
export function contextBudget(facts: ModelFacts, system: string, tools: Pick<ToolRegistry, 'characters'>): ContextBudget {
  let systemTokens: number | undefined;
  return {
    limitTokens: countLimitTokens(facts),
    overheadCharacters: () => system.length + tools.characters,
    overheadTokens: () => (systemTokens ??= estimateTokens(system)) + Math.ceil(tools.characters / SCHEMA_CHARACTERS_PER_TOKEN),
    estimateTokens,
  };
}

/** Do tools and prompt leave a conversation little room? */
export function isCrowded(budget: Pick<ContextBudget, 'limitTokens' | 'overheadCharacters' | 'overheadTokens'>): boolean {
  const roomTokens = budget.limitTokens * overheadShareMax;
  // A token has more than one character: most models are known to suffice without an estimate.
  return budget.overheadCharacters() > roomTokens && budget.overheadTokens() > roomTokens;
}

/**
 * Models of the providers file that the tools of the admin agent alone fill by half: for the log, before a tenant meets
 * them.
 */
export function crowdedModels(
  providers: Providers,
): { readonly model: string; readonly contextWindow: number; readonly toolTokens: number }[] {
  const tools = new ToolRegistry(allTools, 'admin', undefined);
  const usable = [...new Set([providers.default, ...providers.fallbacks])]
    .map((ref) => findModel(providers, ref))
    .filter((model) => model !== undefined);
  return usable.flatMap(({ ref, facts }) => {
    const budget = contextBudget(facts, '', tools);
    return isCrowded(budget) ? [{ model: ref, contextWindow: facts.contextWindow, toolTokens: budget.overheadTokens() }] : [];
  });
}

export interface StatusFacts {
  readonly turn: Pick<AcceptedTurn, 'agent' | 'channel' | 'sessionId'>;
  readonly conversation: Conversation;
  readonly budget: ContextBudget;
  readonly model: { readonly ref: string; readonly facts: ModelFacts };
  readonly maxTurns: number;
  readonly timezone: string | undefined;
}

/** The answer of the `status` tool, built when it is called. */
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
