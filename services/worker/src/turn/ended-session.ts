import {
  isMcpToolName,
  isToolName,
  sessionOrigins,
  truncate,
  type AcceptedTurn,
  type ChannelAddress,
  type ErrorCode,
  type FinishReason,
  type HistoryLine,
  type Session,
  type TraceFacts,
  type TurnRecord,
  AppError,
} from '@concierge/contract';
import type { Conversation } from '@concierge/agent';
import { budgetSpentNotice, LeaseLost, TurnCancelled, TurnTimedOut, type TurnRun } from '@concierge/turn';
import { ModelError, type ModelErrorKind } from '@concierge/model';
import { AgentUnusable } from './turn-agent.ts';

/** How a turn ended. `failed` carries the client's error. */
export type TurnOutcome =
  | { readonly status: 'done'; readonly finishReason: FinishReason; readonly heldBack?: 'handoff' }
  | {
      readonly status: 'cancelled';
      /** The model was asked nothing. */
      readonly isUnbegun?: boolean;
    }
  | {
      readonly status: 'failed';
      readonly code: ErrorCode;
      readonly message: string;
      readonly retryable?: boolean;
      /** Which model failed it. */
      readonly model?: string | undefined;
      /** It was called with the tenant's own key. */
      readonly ownKey?: boolean | undefined;
    };

/**
 * Ended turns that a session file names; older ones are in its history and in the index. Moved in groups: each move is
 * a write.
 */
export const turnRecordBounds = { max: 64, keep: 32 } as const;

const TITLE_MAX_CHARACTERS = 80;
const HEARTBEAT_TITLE = 'Heartbeat';

/** The session of a conversation's first turn, before anything is in it. */
export function newSession(turn: AcceptedTurn, now: string): Session {
  return {
    version: 1,
    id: turn.sessionId,
    agent: turn.agent,
    channel: turn.channel,
    sender: turn.sender,
    origin: sessionOrigins[turn.origin],
    revision: 0,
    createdAt: now,
    updatedAt: now,
    // What a heartbeat is asked is the service's own instruction.
    title: turn.origin === 'heartbeat' ? HEARTBEAT_TITLE : toTitle(turn.text),
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
  };
}

/** What ended: the record of the turn, first, and those of the turns that it answered. */
interface EndedTurns {
  readonly records: readonly [TurnRecord, ...TurnRecord[]];
  readonly channelAddress: ChannelAddress | undefined;
}

interface EndedSession {
  readonly next: Session;
  readonly history: HistoryLine[];
}

/**
 * The next revision of the session, with the turn and those it answered in it, and what has to be in the history before
 * that revision is published.
 */
export function endedSession(session: Session, conversation: Conversation, { records, channelAddress }: EndedTurns): EndedSession {
  const turns = [...session.turns, ...records];
  const kept = turns.length > turnRecordBounds.max ? turns.slice(-turnRecordBounds.keep) : turns;
  const retired = turns.slice(0, turns.length - kept.length).map((turn): HistoryLine => ({ kind: 'turn', turn }));
  const next: Session = {
    ...session,
    ...(channelAddress !== undefined && { channelAddress }),
    title: records[0].origin === 'heartbeat' && session.turns.length === 0 ? heartbeatTitle(conversation) : session.title,
    revision: session.revision + 1,
    updatedAt: records[0].endedAt,
    messageCount: conversation.messageCount,
    summary: conversation.summary,
    messages: [...conversation.messages],
    turns: kept,
    contextTokens: conversation.contextTokens,
  };
  return { next, history: [...conversation.archived, ...retired] };
}

/** What remains of the turn. */
export function turnRecord({ turn, attempt, startedAtMs }: TurnRun, conversation: Conversation, outcome: TurnOutcome): TurnRecord {
  const { tally } = conversation;
  return {
    id: turn.turnId,
    status: outcome.status,
    origin: turn.origin,
    acceptedAt: new Date(turn.acceptedAtMs).toISOString(),
    startedAt: outcome.status === 'cancelled' && outcome.isUnbegun === true ? null : new Date(startedAtMs).toISOString(),
    firstTextAt: tally.firstTextAt,
    endedAt: new Date().toISOString(),
    attempts: attempt,
    usage: tally.usage,
    models: tally.models,
    finishReason: toFinishReason(outcome),
    error: toTurnError(outcome),
    steps: [...tally.steps],
    requestHash: turn.requestHash,
    keyId: turn.keyId,
    ...(outcome.status === 'done' && outcome.heldBack !== undefined && { heldBack: outcome.heldBack }),
    ...(turn.grant !== undefined && { parentTurnId: turn.grant.parentTurnId }),
    ...(outcome.status === 'failed' && outcome.model !== undefined && { failedModel: outcome.model }),
    ...(outcome.status === 'failed' && outcome.ownKey === true && { failedOnOwnKey: true }),
  };
}

const LOGGED_TOOLS_MAX = 200;
/** What is shorter is not a wait for anything but the wake-up. */
const PLACE_WAIT_MIN_MS = 50;

type Started = Pick<TurnRun, 'turn' | 'startedAtMs' | 'wokenAtMs' | 'attempt'>;

/**
 * Why the turn waited, from what its worker knows: an earlier turn of its session ended later than this one was
 * accepted; the rest until its wake-up was for more messages or for a place of its tenant; then it waited for a slot.
 */
export function listWaits({ turn, startedAtMs, wokenAtMs, attempt }: Started, session: Pick<Session, 'turns'>): TraceFacts['waits'] {
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

/** The title of a heartbeat: what the agent reported. */
function heartbeatTitle({ messages }: Conversation): string {
  const said = messages.findLast((message) => message.role === 'assistant')?.text.trim() ?? '';
  return said === '' ? HEARTBEAT_TITLE : toTitle(`${HEARTBEAT_TITLE}: ${said}`);
}

function toTurnError(outcome: TurnOutcome): TurnRecord['error'] {
  if (outcome.status !== 'failed') return null;
  const { code, message, retryable } = outcome;
  return { code, message, ...(retryable !== undefined && { retryable }) };
}

function toFinishReason(outcome: TurnOutcome): FinishReason | null {
  switch (outcome.status) {
    case 'done':
      return outcome.finishReason;
    case 'cancelled':
      return 'cancelled';
    case 'failed':
      return null;
  }
}

/** The first line of the first message, shortened between words. */
export function toTitle(text: string): string {
  const line = text.trim().split('\n', 1)[0]?.replaceAll(/\s+/gu, ' ').trim() ?? '';
  if (line === '') return 'Conversation';
  if (line.length <= TITLE_MAX_CHARACTERS) return line;
  const short = truncate(line, TITLE_MAX_CHARACTERS);
  const lastSpace = short.lastIndexOf(' ');
  return `${lastSpace > TITLE_MAX_CHARACTERS / 2 ? short.slice(0, lastSpace) : short}…`;
}

/** What a customer reads. The reason goes to the owner and to the log. */
const messages: Record<ModelErrorKind, string> = {
  context_overflow: 'The conversation is too long for the model, even after it was shortened.',
  rate_limited: 'The model provider is refusing requests for now. Try again later.',
  unavailable: 'The model provider cannot be reached. Try again later.',
  rejected: 'The model provider refused the request.',
  timeout: 'The model provider did not answer in time. Try again later.',
};

/** Kinds after which the same turn may end well later. */
const passing: ReadonlySet<ModelErrorKind> = new Set(['rate_limited', 'unavailable', 'timeout']);

const FLAGGED = 'the provider does not answer what is written in this conversation';

/** The provider's code decides first: used-up credit comes as 429, an unknown model as 400. */
const reasonsByCode: Readonly<Record<string, string>> = {
  insufficient_quota: 'the credit at the provider is used up',
  billing_not_active: 'the account at the provider is not active',
  model_not_found: 'the provider has no such model, or not for this key',
  invalid_api_key: 'the provider does not accept the key',
  content_filter: FLAGGED,
  content_policy_violation: FLAGGED,
  invalid_prompt: FLAGGED,
};
const reasonsByStatus: Readonly<Record<number, string>> = {
  401: 'the provider does not accept the key',
  402: 'the credit at the provider is used up',
  403: 'the provider does not allow this key to use it',
  404: 'the provider has no such model, or not for this key',
};
const reasonsByKind: Record<ModelErrorKind, string> = {
  context_overflow: 'the conversation is too long for it',
  rate_limited: 'the provider refuses requests for now',
  unavailable: 'the provider cannot be reached',
  rejected: 'the provider refused the request',
  timeout: 'the provider did not answer in time',
};

/**
 * Why a model call failed, for owner and operator: `openai/gpt-5-mini: the provider does not accept the key (401
 * invalid_api_key)`. Nothing that the provider wrote.
 */
export function whyItFailed(error: ModelError): string {
  const { model, status, code, ownKey } = error;
  const facts = [status, code].filter((fact) => fact !== undefined).join(' ');
  const called = ownKey ? ', called with the own key of the tenant' : '';
  return `${model ?? 'the model'}${called}: ${findReason(error)}${facts === '' ? '' : ` (${facts})`}`;
}

function findReason({ kind, status, code, ownKey }: ModelError): string {
  const byCode = code !== undefined && Object.hasOwn(reasonsByCode, code) ? reasonsByCode[code] : undefined;
  const known = byCode ?? reasonsByStatus[status ?? 0];
  if (known !== undefined) return known;
  // The model was not asked at all: no provider of the file by this name has a key.
  const isUnasked = kind === 'rejected' && status === undefined && code === undefined;
  if (!isUnasked) return reasonsByKind[kind];
  return ownKey ? NO_OWN_KEY : NO_KEY;
}

const NO_KEY = 'the providers file has no usable key for it';
const NO_OWN_KEY = 'that key cannot be read, or its provider is no longer there: enter it again, or remove it';

/**
 * The end that an error of the loop stands for; `isOwners`: the owner reads it. Rethrows what is no end: a lease that
 * was lost, a worker that drains, a fault of the machine or of our own. The turn is then started again after its last
 * finished step.
 */
export function toOutcome(error: unknown, signal: AbortSignal, isOwners: boolean): TurnOutcome {
  if (error instanceof LeaseLost) throw error;
  if (signal.aborted) return stoppedOutcome(signal.reason);
  if (error instanceof ModelError) {
    const message = isOwners && error.kind === 'rejected' ? `${messages.rejected} ${whyItFailed(error)}.` : messages[error.kind];
    return {
      status: 'failed',
      code: 'provider_error',
      message,
      retryable: passing.has(error.kind),
      model: error.model,
      ownKey: error.ownKey,
    };
  }
  if (error instanceof AgentUnusable) return { status: 'failed', code: error.code, message: error.message };
  if (error instanceof AppError && (error.code === 'provider_error' || error.code === 'budget_exceeded'))
    return { status: 'failed', code: error.code, message: isOwners || error.code === 'provider_error' ? error.message : budgetSpentNotice };
  throw error;
}

function stoppedOutcome(reason: unknown): TurnOutcome {
  if (reason instanceof TurnCancelled) return { status: 'cancelled' };
  if (reason instanceof TurnTimedOut) return { status: 'failed', code: 'turn_timeout', message: 'The turn took too long and was stopped.' };
  throw reason;
}

/** Of a cancelled turn: whether the model was asked nothing yet. */
export function markUnbegun({ hasPrompt }: Pick<Conversation, 'hasPrompt'>, outcome: TurnOutcome): TurnOutcome {
  return outcome.status === 'cancelled' && !hasPrompt ? { ...outcome, isUnbegun: true } : outcome;
}

/** The result of an open tool call after the turn ended so. */
export function noteFor(outcome: TurnOutcome): string {
  return `No result: ${describeEnd(outcome)} before this call finished. It may have taken effect.`;
}

function describeEnd(outcome: TurnOutcome): string {
  switch (outcome.status) {
    case 'done':
      return 'a person took the conversation over';
    case 'cancelled':
      return 'the turn was cancelled';
    case 'failed':
      return 'the turn ended in an error';
  }
}
