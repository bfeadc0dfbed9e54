import {
  toNotesOwner,
  fitContext,
  type ContextBudget,
  allTools,
  timestamp,
  ToolRegistry,
  usedTokens,
  type Conversation,
  type TurnStatus,
} from '@concierge/agent';
import { limits, type ModelFacts, countLimitTokens, overheadShareMax, type AcceptedTurn } from '@concierge/contract';
import { estimateTokens, findModel, type Providers } from '@concierge/model';
import type { TurnRun } from '@concierge/turn';
import type { TurnAgent } from './turn-agent.ts';
import type { ReportWarning } from './turn-warnings.ts';

export type PromptContext = ReturnType<typeof fitContext>;

/**
 * What tenants write of a turn's prompt, as it is now and as much of it as has its place there. The owner is warned of
 * the rest.
 */
export async function promptContext(
  run: TurnRun,
  { agent, facts, warn }: { readonly agent: TurnAgent; readonly facts: ModelFacts; readonly warn: ReportWarning | undefined },
): Promise<PromptContext> {
  const { name, access, part } = agent;
  const loaded = await run.scope.context.load({
    agent: name,
    sender: toNotesOwner(run.turn),
    memory: access === 'cs' ? 'contact' : 'owner',
  });
  const context = fitContext({ ...loaded, part }, { contextWindow: facts.contextWindow, estimateTokens, agent: name, access });
  for (const { name: file, reason } of loaded.unusable) {
    const message = `${nameOwner(file, access)} is not in the prompt: ${reason}`;
    warn?.(run, { code: 'context_unreadable', message, subject: nameOwner(file, access) });
  }
  for (const { name: file, shownBytes, bytes } of context.cuts) {
    const why =
      bytes > limits.contextFileMaxBytes
        ? `a context file may have ${String(limits.contextFileMaxBytes)}`
        : 'together they may take a quarter of the model’s window';
    const message = `${nameOwner(file, access)} has ${String(bytes)} bytes, and only the first ${String(shownBytes)} are in the prompt: ${why}.`;
    warn?.(run, { code: 'context_cut', message, subject: nameOwner(file, access) });
  }
  if (context.skillsLeftOut > 0) {
    const message = `${String(context.skillsLeftOut)} skills are not named in the prompt: together they may take a quarter of the model’s window.`;
    warn?.(run, { code: 'context_cut', message, subject: 'skills' });
  }
  return context;
}

/** Which of the two: the owner's own, or that of the contact of the turn. */
function nameOwner(file: string, access: TurnAgent['access']): string {
  return access === 'cs' && (file === 'MEMORY.md' || file === 'USER.md') ? `${file} of a contact` : file;
}

export function warnOfSmallWindow(
  run: TurnRun,
  {
    budget,
    model,
    warn,
  }: {
    readonly budget: ContextBudget;
    readonly model: { readonly ref: string; readonly facts: ModelFacts };
    readonly warn: ReportWarning | undefined;
  },
): void {
  if (warn === undefined || !isCrowded(budget)) return;
  const { agent } = run.turn;
  const message = `Tools and prompt of the agent ${agent} take about ${String(budget.overheadTokens())} tokens, and ${model.ref} has a window of ${String(model.facts.contextWindow)}: conversations are shortened all the time. Give the agent fewer tools or a model with a larger window.`;
  warn(run, { code: 'window_small', message, subject: `${agent} ${model.ref}` });
}

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
function isCrowded(budget: Pick<ContextBudget, 'limitTokens' | 'overheadCharacters' | 'overheadTokens'>): boolean {
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

interface StatusFacts {
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
