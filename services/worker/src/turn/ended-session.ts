import {
  toSessionOrigin,
  truncate,
  type AcceptedTurn,
  type ChannelAddress,
  type ErrorCode,
  type FinishReason,
  type HistoryLine,
  type Session,
  type TurnRecord,
} from '@concierge/contract';
import type { Conversation } from '@concierge/agent';
import type { TurnRun } from '@concierge/turn';

/** How a turn ended. `failed` carries the client's error. */
export type TurnOutcome =
  | { readonly status: 'done'; readonly finishReason: FinishReason; readonly heldBack?: 'handoff' }
  | { readonly status: 'cancelled' }
  | { readonly status: 'failed'; readonly code: ErrorCode; readonly message: string; readonly retryable?: boolean };

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
    origin: toSessionOrigin(turn.origin),
    revision: 0,
    createdAt: now,
    updatedAt: now,
    // What a heartbeat is asked is the service's own instruction.
    title: turn.origin === 'heartbeat' ? HEARTBEAT_TITLE : titleOf(turn.text),
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
  };
}

/**
 * The next revision of the session, with the turn and those it answered in it, and what has to be in the history before
 * that revision is published.
 */
export function endedSession(
  session: Session,
  conversation: Conversation,
  { records, chatApp }: { readonly records: readonly [TurnRecord, ...TurnRecord[]]; readonly chatApp: ChannelAddress | undefined },
): { next: Session; history: HistoryLine[] } {
  const turns = [...session.turns, ...records];
  const kept = turns.length > turnRecordBounds.max ? turns.slice(-turnRecordBounds.keep) : turns;
  const retired = turns.slice(0, turns.length - kept.length).map((turn): HistoryLine => ({ kind: 'turn', turn }));
  const next: Session = {
    ...session,
    ...(chatApp !== undefined && { chatApp }),
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
    startedAt: new Date(startedAtMs).toISOString(),
    firstTextAt: tally.firstTextAt,
    endedAt: new Date().toISOString(),
    attempts: attempt,
    usage: tally.usage,
    models: tally.models,
    finishReason: finishReasonOf(outcome),
    error: errorOf(outcome),
    steps: [...tally.steps],
    requestHash: turn.requestHash,
    keyId: turn.keyId,
    ...(outcome.status === 'done' && outcome.heldBack !== undefined && { heldBack: outcome.heldBack }),
    ...(turn.grant !== undefined && { parentTurnId: turn.grant.parentTurnId }),
  };
}

/** The title of a heartbeat: what the agent reported. */
function heartbeatTitle({ messages }: Conversation): string {
  const said = messages.findLast((message) => message.role === 'assistant')?.text.trim() ?? '';
  return said === '' ? HEARTBEAT_TITLE : titleOf(`${HEARTBEAT_TITLE}: ${said}`);
}

function errorOf(outcome: TurnOutcome): TurnRecord['error'] {
  if (outcome.status !== 'failed') return null;
  const { code, message, retryable } = outcome;
  return { code, message, ...(retryable !== undefined && { retryable }) };
}

function finishReasonOf(outcome: TurnOutcome): FinishReason | null {
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
export function titleOf(text: string): string {
  const line = text.trim().split('\n', 1)[0]?.replaceAll(/\s+/gu, ' ').trim() ?? '';
  if (line === '') return 'Conversation';
  if (line.length <= TITLE_MAX_CHARACTERS) return line;
  const short = truncate(line, TITLE_MAX_CHARACTERS);
  const lastSpace = short.lastIndexOf(' ');
  return `${lastSpace > TITLE_MAX_CHARACTERS / 2 ? short.slice(0, lastSpace) : short}…`;
}
