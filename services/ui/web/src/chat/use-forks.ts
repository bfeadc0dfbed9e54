import { useMemo, useRef, useState } from 'react';
import { findWholeQuestion, type ChatTurn, type Question } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import type { Route } from '../../../src/chat/route.ts';
import { goTo } from '../use-route.ts';
import { setOpening } from './openings.ts';
import { useExplain } from '../words/words.tsx';

/** What is asked differently, answered again or gone on from, each in a conversation of its own: this one stays. */
export interface ForkActions {
  readonly onAskDifferently: (turn: ChatTurn, text: string) => void;
  readonly onAnswerAgain: (turn: ChatTurn) => void;
  readonly onGoOn: (turn: ChatTurn) => void;
}

/** The service refuses it of conversations that are a contact's. */
function isForkable({ agent, channel, isCustomers, contactId }: ConversationState): boolean {
  return contactId !== null && !isCustomers && agent !== 'cs' && channel === 'web';
}

interface Forks {
  /** Null: this conversation cannot be forked. */
  readonly actions: ForkActions | null;
  readonly problem: string | null;
}

export function useForks(gateway: GatewayClient, conversation: Conversation, state: ConversationState): Forks {
  const explain = useExplain();
  const [problem, setProblem] = useState<string | null>(null);
  const isBeginning = useRef(false);
  const actions = useMemo((): ForkActions => {
    const begin = async (turn: ChatTurn, message: Question | null): Promise<void> => {
      // Pressed again before the service has answered, it would begin two.
      if (isBeginning.current) return;
      isBeginning.current = true;
      setProblem(null);
      try {
        const route = await beginElsewhere(gateway, conversation.snapshot(), { turn, includesTurn: message === null });
        enterFork(conversation, route, message);
      } catch (error) {
        setProblem(explain(error));
      }
      isBeginning.current = false;
    };
    return {
      onAskDifferently: (turn, text) => {
        const question = findWholeQuestion(turn);
        if (question !== null) void begin(turn, { ...question, text });
      },
      onAnswerAgain: (turn) => {
        const question = findWholeQuestion(turn);
        if (question !== null) void begin(turn, question);
      },
      onGoOn: (turn) => void begin(turn, null),
    };
  }, [gateway, conversation]);
  return { actions: isForkable(state) ? actions : null, problem };
}

/** Leads to the new conversation and asks there; one who has gone elsewhere meanwhile is not led away from that. */
function enterFork(conversation: Conversation, route: Route, message: Question | null): void {
  if (conversation.isClosed) {
    if (message !== null && route.page === 'conversation') conversation.askIn(route.contactId, message);
    return;
  }
  if (message !== null) setOpening(route, message);
  goTo(route);
}

interface ForkPoint {
  readonly turn: ChatTurn;
  readonly includesTurn: boolean;
}

/** What comes before the first turn is nothing: that is a new conversation. */
async function beginElsewhere(gateway: GatewayClient, state: ConversationState, { turn, includesTurn }: ForkPoint): Promise<Route> {
  const { contactId, agent, turns, earlier } = state;
  const isFirst = earlier === null && turns[0]?.key === turn.key;
  if (contactId === null || turn.turnId === null || (isFirst && !includesTurn)) return { page: 'new', agent };
  return { page: 'conversation', contactId: await gateway.forkSession(contactId, { turnId: turn.turnId, includesTurn }) };
}
