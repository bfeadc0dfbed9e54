import { randomKey } from '@concierge/client';
import { useEffect, useState } from 'react';
import type { ChatTurn } from '../../../src/chat/chat-turn.ts';
import { Conversation } from '../../../src/chat/conversation.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { SavedTurnStore } from '../../../src/chat/saved-turns.ts';
import { useConversationState } from '../chat/use-conversation-state.ts';
import { waitForBetter } from '../parts/wait-for-better.ts';
import { useOtherTabs } from '../sessions/use-handoffs.ts';

/** Nothing is sent from here: what the chat page has not handed in yet stays with it. */
const nothingSaved = new SavedTurnStore({ getItem: () => null, setItem: () => undefined, removeItem: () => undefined });

/**
 * The newest turns of a conversation, those under way as far as they have come. They are only followed: the inbox
 * starts none.
 */
export function useLiveTurns(gateway: GatewayClient, id: string): readonly ChatTurn[] {
  const [conversation, setConversation] = useState<Conversation | null>(null);
  useEffect(() => {
    const followed = new Conversation({
      target: { agent: 'cs', contactId: id, sender: null, channel: 'web' },
      gateway,
      saved: nothingSaved,
      restore: false,
      keepEnded: false,
      wait: waitForBetter,
      newKey: randomKey,
      now: () => new Date(),
    });
    setConversation(followed);
    void followed.open();
    return () => {
      followed.close();
    };
  }, [gateway, id]);
  useOtherTabs(conversation, conversation === null ? null : id);
  const turns = useConversationState(conversation)?.turns ?? [];
  return turns.filter(({ isFromStaff }) => !isFromStaff);
}
