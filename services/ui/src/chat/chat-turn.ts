import { extendReply, type Reply } from '@concierge/client';
import type { FinishReason, TurnEvent, UploadRef, Usage } from '@concierge/contract';

/** What the user asked; null when it was asked elsewhere and is not stored yet. */
export interface Question {
  readonly text: string;
  readonly attachments: readonly UploadRef[];
  /** ISO time. */
  readonly at: string;
  /** As a list shows it: perhaps only its beginning, and without its files. */
  readonly isExcerpt?: boolean;
}

export interface TurnFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
}

/**
 * sending → waiting (the service has accepted it; others come first, or no event has come yet) → running (an event has
 * come) → done or failed. sending → unsent when the service refused it or could not be reached: it never became a turn.
 */
export type TurnState =
  | { readonly at: 'sending' }
  | { readonly at: 'waiting' }
  | { readonly at: 'running' }
  | {
      readonly at: 'done';
      readonly finishReason: FinishReason | null;
      readonly usage: Usage | null;
      /** US dollars; missing where no price is known. */
      readonly costUsd?: number;
      /** It was taken back before it began. */
      readonly isUnbegun?: boolean;
    }
  | { readonly at: 'failed'; readonly failure: TurnFailure }
  | { readonly at: 'unsent'; readonly failure: TurnFailure };

/** `lost`: tried again and again in vain; goes on when the user asks for it. */
export type TurnLink = 'live' | 'reconnecting' | 'lost';

/** One turn as the page shows it: what was asked and what came back so far. Immutable; a change makes a new one. */
export interface ChatTurn extends Reply {
  /** A key made by this page, stable while the turn is shown. */
  readonly key: string;
  readonly turnId: string | null;
  readonly question: Question | null;
  /** A staff member writes in the agent's place; there is no question. */
  readonly isFromStaff: boolean;
  readonly state: TurnState;
  readonly link: TurnLink;
  /** The user has asked for it to stop. */
  readonly stopping: boolean;
}

export function newTurn(given: Pick<ChatTurn, 'key'> & Partial<ChatTurn>): ChatTurn {
  return {
    turnId: null,
    question: null,
    isFromStaff: false,
    parts: [],
    settled: 0,
    state: { at: 'sending' },
    link: 'live',
    stopping: false,
    ...given,
  };
}

/** Whether nothing more will come. */
export function hasEnded(turn: ChatTurn): boolean {
  return turn.state.at === 'done' || turn.state.at === 'failed' || turn.state.at === 'unsent';
}

/** Whether the service has it and it has not ended. */
export function isUnderWay(turn: ChatTurn): boolean {
  return turn.state.at === 'waiting' || turn.state.at === 'running';
}

/** What was asked, where all of it is known: only that may be sent again. */
export function findWholeQuestion({ question }: Pick<ChatTurn, 'question'>): Question | null {
  return question?.isExcerpt === true ? null : question;
}

/** Turns that wait behind another one that waits or runs, in their order. */
export function findQueued(turns: readonly ChatTurn[]): ChatTurn[] {
  return turns.filter(isUnderWay).slice(1);
}

/** The turn after one more event. */
export function applyEvent(turn: ChatTurn, event: TurnEvent): ChatTurn {
  const changed = { ...turn, ...extendReply(turn, event) };
  if (event.type === 'session') {
    return { ...changed, turnId: event.data.turnId, state: turn.state.at === 'sending' ? { at: 'waiting' } : turn.state };
  }
  if (event.type === 'done') {
    const { inputTokens, outputTokens, finishReason } = event.data;
    // Its end is the first that is heard of it, and nobody here has stopped it.
    const isUnbegun = finishReason === 'cancelled' && turn.state.at === 'waiting' && !turn.stopping;
    return end(changed, { at: 'done', finishReason, usage: { inputTokens, outputTokens }, ...(isUnbegun && { isUnbegun }) });
  }
  if (event.type === 'error') {
    const { code, message, retryable } = event.data;
    return end(changed, { at: 'failed', failure: { code, message, retryable } });
  }
  return { ...changed, state: { at: 'running' } };
}

function end(turn: ChatTurn, state: TurnState): ChatTurn {
  return { ...turn, state, link: 'live', stopping: false };
}
