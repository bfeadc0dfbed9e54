import type { ConciergeError } from '@concierge/client';
import type { ChannelName, SessionView, TurnView } from '@concierge/contract';
import { isUnderWay, newTurn, type ChatTurn } from './chat-turn.ts';
import type { SavedTurn } from './saved-turns.ts';
import { stateOf, turnsOfSession } from './turns-of-session.ts';

/** loading → ready, or failed; failed → loading when the user tries again. */
export type ConversationLoad =
  | { readonly at: 'loading' }
  | { readonly at: 'ready' }
  | { readonly at: 'failed'; readonly failure: ConciergeError };

/** One conversation as the page shows it. Immutable. */
export interface ConversationState {
  readonly agent: string;
  /** Null until the service has accepted the first message. */
  readonly contactId: string | null;
  /** The contact that the user plays towards cs; null: an anonymous visitor, or not cs. */
  readonly sender: string | null;
  readonly channel: ChannelName;
  /** A customer has it with an agent: nothing may be written in the customer's place; staff take it over to answer. */
  readonly isCustomers: boolean;
  readonly title: string | null;
  readonly load: ConversationLoad;
  readonly turns: readonly ChatTurn[];
}

/**
 * Contacts that the console plays have prefixed names, so that no real customer's conversation is ever written into.
 */
const PLAYED_PREFIX = 'console:';

export function playedSender(name: string): string | null {
  return name === '' ? null : `${PLAYED_PREFIX}${name}`;
}

/** The name that the console's user gave to the contact, or the sender as it is. */
export function nameOfSender(sender: string): string {
  return sender.startsWith(PLAYED_PREFIX) ? sender.slice(PLAYED_PREFIX.length) : sender;
}

export function changeTurn(state: ConversationState, key: string, change: (turn: ChatTurn) => ChatTurn): ConversationState {
  return { ...state, turns: state.turns.map((turn) => (turn.key === key ? change(turn) : turn)) };
}

export interface Known {
  readonly session: SessionView | null;
  readonly views: readonly TurnView[];
  readonly saved: readonly SavedTurn[];
}

/**
 * Every turn of a conversation once: what is stored, then what is under way in the order of acceptance, then what this
 * tab has not handed in yet. A saved message gives a turn under way the question that the service does not list.
 */
export function mergeTurns({ session, views, saved }: Known): ChatTurn[] {
  const stored = session === null ? [] : turnsOfSession(session, views);
  const shown = new Set(stored.map((turn) => turn.turnId));
  const savedOf = new Map(saved.map((turn) => [turn.turnId, turn]));
  const underWay = views
    .filter((view) => (view.status === 'waiting' || view.status === 'running') && !shown.has(view.id))
    // The list is newest first; turns accepted in one millisecond keep its order, turned round.
    .toReversed()
    .toSorted((one, other) => one.acceptedAt.localeCompare(other.acceptedAt))
    .map((view) => {
      const known = savedOf.get(view.id);
      shown.add(view.id);
      return newTurn({
        key: known?.key ?? view.id,
        turnId: view.id,
        question: known?.question ?? null,
        isFromStaff: view.origin === 'person',
        state: stateOf(view),
      });
    });
  const remembered = saved
    .filter((turn) => turn.turnId === null || !shown.has(turn.turnId))
    .map(({ key, turnId, question }) => newTurn({ key, turnId, question, state: { at: turnId === null ? 'sending' : 'waiting' } }));
  return [...stored, ...underWay, ...remembered];
}

/**
 * Puts stored turns before those that are shown already. A shown turn keeps its place and what only the stream
 * contained.
 */
export function withStored(shown: readonly ChatTurn[], stored: readonly ChatTurn[]): ChatTurn[] {
  const storedIds = new Set(stored.map((turn) => turn.turnId));
  const kept = shown.filter((turn) => turn.turnId === null || isUnderWay(turn) || !storedIds.has(turn.turnId));
  const keptIds = new Set(kept.map((turn) => turn.turnId));
  const ended = stored
    .filter((turn) => !keptIds.has(turn.turnId))
    .map((turn) => {
      const before = shown.find((other) => other.turnId === turn.turnId);
      if (before === undefined) return turn;
      return before.parts.length === 0 ? { ...turn, key: before.key } : { ...before, question: before.question ?? turn.question };
    });
  return [...ended, ...kept];
}
