import type { Conversation } from '@concierge/agent';
import {
  countPromptCharacters,
  isMcpToolName,
  isToolName,
  toPromptParts,
  type MeasuredPart,
  type PromptPart,
  type Session,
  type SessionMessage,
  type TraceFacts,
  type TurnRecord,
} from '@concierge/contract';
import { measurePart } from '@concierge/tenant';
import type { TurnRun } from '@concierge/turn';
import type { PromptContext, TurnAgent } from '../turn/turn-agent.ts';

const LOGGED_TOOLS_MAX = 200;
/** What is shorter is not a wait for anything but the wake-up. */
const PLACE_WAIT_MIN_MS = 50;

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

/**
 * Why the turn waited, from what its worker knows: an earlier turn of its session ended later than this one was
 * accepted; the rest until its wake-up was for more messages or for a place of its tenant; then it waited for a slot.
 */
export function listWaits(
  { turn, startedAtMs, wokenAtMs, attempt }: Pick<TurnRun, 'turn' | 'startedAtMs' | 'wokenAtMs' | 'attempt'>,
  session: Pick<Session, 'turns'>,
): TraceFacts['waits'] {
  const { acceptedAtMs } = turn;
  const before = session.turns.map(({ endedAt }) => Date.parse(endedAt)).filter((ms) => ms > acceptedAtMs && ms <= startedAtMs);
  const freeMs = Math.max(acceptedAtMs, ...before);
  // A later attempt was woken for another reason than the first: why that one waited is not known.
  const wokenMs = attempt > 1 ? freeMs : Math.min(startedAtMs, Math.max(freeMs, wokenAtMs ?? freeMs));
  const isPlaceWait = wokenMs - freeMs >= PLACE_WAIT_MIN_MS;
  const queuedFromMs = isPlaceWait ? wokenMs : freeMs;
  const waits: TraceFacts['waits'] = [
    { reason: 'own_session', ms: freeMs - acceptedAtMs },
    { reason: turn.collects === true ? 'debounce' : 'tenant_share', ms: queuedFromMs - freeMs },
    { reason: 'no_free_slot', ms: startedAtMs - queuedFromMs },
  ];
  return waits.map(({ reason, ms }) => ({ reason, ms: Math.round(ms) })).filter(({ ms }) => ms > 0);
}

/** What the record of an ended turn keeps of its life. */
export function traceFacts(run: TurnRun, session: Session, { tally }: Conversation): TraceFacts {
  const { receivedAtMs } = run.turn;
  return {
    ...(receivedAtMs !== undefined && { receivedAt: new Date(receivedAtMs).toISOString() }),
    waits: listWaits(run, session),
    ...(tally.prompt !== undefined && { prompt: tally.prompt.facts, model: tally.prompt.model }),
  };
}

/** What the log says of a turn's end: names, times, tokens and money, and no text. */
export function endFacts({ turn }: Pick<TurnRun, 'turn'>, record: TurnRecord): Readonly<Record<string, unknown>> {
  const { status, usage, steps, endedAt, models, error, finishReason, trace } = record;
  const costs = models.flatMap(({ costUsd }) => (costUsd === null ? [] : [costUsd]));
  const tools = steps.filter(({ kind }) => kind === 'tool');
  return {
    agent: turn.agent,
    channel: turn.channel,
    origin: turn.origin,
    sessionId: turn.sessionId,
    status,
    outcome: error?.code ?? finishReason ?? status,
    waits: Object.fromEntries((trace?.waits ?? []).map(({ reason, ms }) => [reason, ms])),
    models: models.map(({ model }) => model),
    modelCalls: models.reduce((sum, { calls }) => sum + calls, 0),
    failedAttempts: steps.reduce((sum, { failedAttempts = 0 }) => sum + failedAttempts, 0),
    tools: [...Map.groupBy(tools.slice(0, LOGGED_TOOLS_MAX), ({ name }) => nameTool(name))].map(([name, calls]) => ({
      name,
      calls: calls.length,
      failed: calls.filter(({ isError }) => isError).length,
    })),
    steps: steps.length,
    ...usage,
    costUsd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    firstTextMs: record.firstTextAt === null ? null : Date.parse(record.firstTextAt) - turn.acceptedAtMs,
    ms: Date.parse(endedAt) - turn.acceptedAtMs,
  };
}

/** A name that the model made up could be anything. */
function nameTool(name: string): string {
  return isToolName(name) || isMcpToolName(name) ? name : 'unknown';
}
