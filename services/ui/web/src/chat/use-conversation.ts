import { randomKey } from '@concierge/client';
import { useQueryClient } from '@tanstack/react-query';
import { useLayoutEffect, useRef, useState } from 'react';
import { Conversation } from '../../../src/chat/conversation.ts';
import type { ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import type { Route } from '../../../src/chat/route.ts';
import { SavedTurnStore } from '../../../src/chat/saved-turns.ts';
import { keep, readKept } from '../parts/browser-storage.ts';
import { waitForBetter } from '../parts/wait-for-better.ts';
import { takeOpening } from './openings.ts';
import type { Reach } from '../../../src/signed-in.ts';
import { refreshSessions } from '../sessions/session-list.tsx';
import { ownerSession } from '../sign-in/owner-session.ts';
import { unsentWords } from '../sign-in/unsent-words.ts';
import { replaceRoute } from '../use-route.ts';

/**
 * What a reload would lose, for as long as this sign-in lasts: what is still being handed in when the user signs out
 * must not leave its words in the tab, nor change what the next one who signs in there has kept.
 */
function openSavedTurns(): SavedTurnStore {
  const signIn = ownerSession.snapshot();
  return new SavedTurnStore({
    getItem: (name) => readKept('sessionStorage', name),
    setItem: (name, text) => {
      const now = ownerSession.snapshot();
      if (now.status === 'signed-in' && now === signIn) keep('sessionStorage', name, text);
    },
    removeItem: (name) => {
      const now = ownerSession.snapshot();
      if (now.status !== 'signed-in' || now === signIn) keep('sessionStorage', name, null);
    },
  });
}

/** Messages that the service has not accepted. */
function listUnsent(conversation: Conversation | null): string[] {
  const turns = (conversation?.snapshot().turns ?? []).filter(({ turnId }) => turnId === null);
  return turns.flatMap(({ question }) => (question === null ? [] : [question.text]));
}

function shows(state: ConversationState, route: Route): boolean {
  return route.page === 'new' ? state.contactId === null && state.agent === route.agent : state.contactId === route.contactId;
}

/** The conversation that the address names; null for the moment before it is there. */
export function useConversation(gateway: GatewayClient, route: Route, reach: Reach): Conversation | null {
  const queries = useQueryClient();
  const current = useRef<Conversation | null>(null);
  const [conversation, setConversation] = useState<Conversation | null>(null);

  // Before the browser goes on: what is written next is not for the field of the conversation that is left.
  useLayoutEffect(() => {
    if (current.current !== null && shows(current.current.snapshot(), route)) return;
    const first = current.current === null;
    current.current?.close();
    const next = new Conversation({
      target: {
        agent: route.page === 'new' ? route.agent : reach === 'cs' ? 'cs' : 'admin',
        contactId: route.page === 'new' ? null : route.contactId,
        sender: null,
        channel: 'web',
      },
      gateway,
      saved: openSavedTurns(),
      restore: first,
      keepEnded: reach === 'cs',
      wait: waitForBetter,
      newKey: randomKey,
      now: () => new Date(),
      onContact: (contactId) => {
        replaceRoute({ page: 'conversation', contactId });
      },
      onTurnEnded: () => void refreshSessions(queries, next.snapshot().contactId),
    });
    current.current = next;
    setConversation(next);
    const opening = takeOpening(route);
    void next.open().then(() => {
      if (opening !== undefined) next.send(opening);
    });
  }, [gateway, queries, reach, route]);

  useLayoutEffect(
    () => () => {
      if (ownerSession.isRefused) unsentWords.keep(listUnsent(current.current));
      current.current?.close();
      current.current = null;
    },
    [gateway],
  );
  return conversation;
}
