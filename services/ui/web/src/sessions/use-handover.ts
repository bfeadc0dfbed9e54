import { ConciergeError } from '@concierge/client';
import type { HandoffState } from '@concierge/contract';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { explain } from '../../../src/chat/chat-failure.ts';
import { hasEnded } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import type { SignedIn } from '../signed-in.ts';
import { useHandoff } from './use-handoffs.ts';

export interface HandoffActions {
  readonly takeOver: () => void;
  readonly giveBack: () => void;
  readonly isBusy: boolean;
  readonly problem: string | null;
}

/** Passes the conversation on, and looks at once at what has become of it. */
function useHandoffActions(gateway: GatewayClient, sessionId: string): HandoffActions {
  const queries = useQueryClient();
  const onSettled = async (): Promise<void> => {
    await Promise.all([
      queries.invalidateQueries({ queryKey: ['handoff', sessionId] }),
      queries.invalidateQueries({ queryKey: ['handoffs'] }),
    ]);
  };
  const taking = useMutation({ mutationFn: async () => gateway.takeOver(sessionId), onSettled });
  const giving = useMutation({ mutationFn: async () => gateway.giveBack(sessionId), onSettled });
  const error: unknown = taking.error ?? giving.error;
  return {
    takeOver: () => taking.mutate(),
    giveBack: () => giving.mutate(),
    isBusy: taking.isPending || giving.isPending,
    problem: error === null ? null : explain(ConciergeError.from(error)),
  };
}

export interface HandoverOptions {
  readonly gateway: GatewayClient;
  readonly conversation: Conversation;
  readonly state: ConversationState;
  readonly reach: SignedIn['reach'];
}

export interface Handover {
  readonly handoff: HandoffState;
  readonly actions: HandoffActions;
  /** Whether staff could take it over. */
  readonly isHandable: boolean;
}

const withAgent: HandoffState = { isPaused: false, handoff: null };

/** Who has the conversation that is shown; while that is staff, the contact's messages are shown as they come. */
export function useHandover({ gateway, conversation, state, reach }: HandoverOptions): Handover {
  const { contactId, agent, turns } = state;
  // The owner already takes part in a conversation of their own; the service does not know a conversation without a
  // stored turn.
  const isHandable = reach === 'tenant' && agent !== 'admin' && turns.some((turn) => turn.turnId !== null && hasEnded(turn));
  const { data, dataUpdatedAt } = useHandoff(gateway, isHandable ? contactId : null);
  const actions = useHandoffActions(gateway, contactId ?? '');
  const handoff = isHandable ? (data?.value ?? withAgent) : withAgent;
  const { isPaused } = handoff;
  useEffect(() => {
    if (isPaused) void conversation.refresh();
  }, [conversation, isPaused, dataUpdatedAt]);
  return { handoff, actions, isHandable };
}
