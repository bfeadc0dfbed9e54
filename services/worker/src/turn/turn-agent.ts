import {
  toNotesOwner,
  fitContext,
  type ContextBudget,
  allTools,
  timestamp,
  ToolRegistry,
  usedTokens,
  type Conversation,
  type ToolAccess,
  type TurnStatus,
} from '@concierge/agent';
import {
  agentRules,
  AppError,
  builtInAgent,
  countLimitTokens,
  countPromptCharacters,
  intersectTools,
  limits,
  lowestAuthority,
  overheadShareMax,
  toPromptParts,
  type AcceptedTurn,
  type AgentDefinition,
  type MeasuredPart,
  type ModelFacts,
  type PromptPart,
  type SessionMessage,
  type TenantSettings,
} from '@concierge/contract';
import { estimateTokens, findModel, type Providers } from '@concierge/model';
import { measurePart } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';
import type { ReportWarning } from './turn-warnings.ts';

/** The agent of one turn, and all that decides what it may do. */
export interface TurnAgent {
  readonly name: string;
  readonly access: ToolAccess;
  /** Names of the tools it may have at most; undefined: all that its access gives. */
  readonly allow: readonly string[] | undefined;
  readonly model: string | undefined;
  readonly maxTurns: number;
  /** What it adds to the prompt; null for a built-in agent. */
  readonly part: string | null;
}

/** The agent cannot take this turn, however often it is tried: the turn ends with this message. */
export class AgentUnusable extends AppError {}

/**
 * Who runs the turn, as things are now: the definition, narrowed by tenant.json, by the authority that the turn was
 * accepted with, and by what the turn that started it has handed on. Nothing here widens. @throws AgentUnusable
 */
export async function turnAgent({ scope, turn }: TurnRun, settings: TenantSettings): Promise<TurnAgent> {
  const builtIn = builtInAgent(turn.agent);
  const { definition, part } = builtIn === undefined ? await ownAgent(scope, turn.agent) : { definition: builtIn, part: null };
  // A prompt that was written for the owner is not shown to strangers, even when it was public as they asked.
  if (part !== null && definition.access === 'admin' && turn.authority === 'cs')
    throw new AgentUnusable('scope_required', `The agent ${turn.agent} is not public.`);
  const { allow, model, maxTurns } = agentRules(definition, settings);
  const access = lowestAuthority(definition.access, turn.authority);
  return { name: turn.agent, access, allow: intersectTools(intersectTools(allow, turn.tools), turn.grant?.tools), model, maxTurns, part };
}

/** Undefined when there is none that can be used. */
export async function agentDefinition(scope: TurnRun['scope'], name: string): Promise<AgentDefinition | undefined> {
  const found = builtInAgent(name) ?? (await scope.agents.find(name));
  if (found === undefined || 'reason' in found) return undefined;
  return 'agent' in found ? found.agent : found;
}

async function ownAgent(scope: TurnRun['scope'], name: string): Promise<{ definition: AgentDefinition; part: string }> {
  const found = await scope.agents.find(name);
  if (found === undefined) throw new AgentUnusable('not_found', `There is no agent ${name} (any more).`);
  if ('reason' in found) throw new AgentUnusable('not_found', `The agent ${name} cannot be used: ${found.reason}.`);
  return { definition: found.agent, part: found.agent.body };
}

export type PromptContext = ReturnType<typeof fitContext>;

/** Who is to read the prompt. */
interface PromptReader {
  readonly agent: TurnAgent;
  readonly facts: ModelFacts;
  readonly warn: ReportWarning | undefined;
}

/**
 * What tenants write of a turn's prompt, as it is now and as much of it as has its place there. The owner is warned of
 * the rest.
 */
export async function promptContext(run: TurnRun, { agent, facts, warn }: PromptReader): Promise<PromptContext> {
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

interface PromptSources {
  readonly context: PromptContext;
  readonly agent: Pick<TurnAgent, 'name' | 'access'>;
  readonly tools: { readonly characters: number };
  readonly conversation: Conversation;
}

/** The parts of a prompt by name, those that are empty left out. */
export function listPromptParts({ context, agent, tools, conversation }: PromptSources): PromptPart[] {
  const { files, heartbeat, part, skills } = context;
  const { messages, summary, turnId } = conversation;
  const isAsked = ({ turnId: of }: SessionMessage): boolean => of === turnId;
  const history = countPromptCharacters(messages.filter((message) => !isAsked(message))) + (summary?.text.length ?? 0);
  // A contact's notes are not the owner's file of that name: nothing is kept of what they were.
  const isNotes = (name: string): boolean => agent.access === 'cs' && name === 'USER.md';
  const measured: readonly MeasuredPart[] = [
    ...files.map(({ name, text }): MeasuredPart => (isNotes(name) ? [name, text.length] : measurePart(name, text))),
    measurePart('HEARTBEAT.md', heartbeat ?? ''),
    measurePart(`agents/${agent.name}.md`, part ?? ''),
    ['skills', skills.reduce((sum, { name, description }) => sum + name.length + description.length, 0)],
    ['tools', tools.characters],
    ['history', history],
    ['message', countPromptCharacters(messages.filter(isAsked))],
  ];
  return toPromptParts(measured);
}

interface CrowdedWindow {
  readonly budget: ContextBudget;
  readonly model: { readonly ref: string; readonly facts: ModelFacts };
  readonly warn: ReportWarning | undefined;
}

export function warnOfSmallWindow(run: TurnRun, { budget, model, warn }: CrowdedWindow): void {
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
    model: conversation.tally.answeredBy ?? model.ref,
    contextTokens: usedTokens(conversation, budget),
    contextWindow: model.facts.contextWindow,
    messages: conversation.messageCount,
    compacted: conversation.summary !== null,
    turn: { modelCalls: conversation.replies, maxTurns, ...conversation.tally.usage },
  });
}
