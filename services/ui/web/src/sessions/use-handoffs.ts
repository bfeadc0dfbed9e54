import type { HandoffState } from '@concierge/contract';
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { GatewayClient, WaitingList, Watched } from '../../../src/chat/gateway-client.ts';

const LISTED = 50;

/**
 * Polling intervals, in milliseconds, for what the feed does not tell: that a handoff has run out, and everything while
 * the feed cannot be read. Where requests are counted a user of the page uses up a tenth of the hour's at most.
 */
const everyMs = {
  list: { free: 60_000, counted: 300_000 },
  /** While staff has the conversation: the contact's messages must be seen soon. */
  handedOver: { free: 15_000, counted: 60_000 },
  withAgent: { free: 60_000, counted: 300_000 },
} as const;

function chooseInterval(kind: keyof typeof everyMs, known: Watched<unknown> | undefined): number {
  return everyMs[kind][known?.isCounted === false ? 'free' : 'counted'];
}

const noneWaiting: WaitingList = { items: [], total: 0 };

/** Conversations that wait for staff. */
export function useWaitingList(gateway: GatewayClient, isAllowed: boolean): WaitingList {
  const { data } = useQuery({
    queryKey: ['handoffs'],
    queryFn: async ({ signal }) => gateway.listHandoffs(LISTED, signal),
    enabled: isAllowed,
    refetchInterval: ({ state }) => chooseInterval('list', state.data),
  });
  return data?.value ?? noneWaiting;
}

/** Who has the conversation that is shown. */
export function useHandoff(gateway: GatewayClient, sessionId: string | null): UseQueryResult<Watched<HandoffState>> {
  return useQuery({
    queryKey: ['handoff', sessionId],
    queryFn: async ({ signal }) => gateway.findHandoff(sessionId ?? '', signal),
    enabled: sessionId !== null,
    staleTime: 0,
    refetchInterval: ({ state }) => chooseInterval(state.data?.value.isPaused === true ? 'handedOver' : 'withAgent', state.data),
  });
}

/** Shows in this tab what is asked in another one: the feed tells of each turn of the conversation. */
export function useOtherTabs(conversation: Conversation | null, contactId: string | null): void {
  useQuery({
    // Below who has the conversation: the same changes touch both.
    queryKey: ['handoff', contactId, 'turns'],
    queryFn: async () => {
      await conversation?.catchUp();
      return contactId;
    },
    enabled: contactId !== null,
  });
}

/** Shows in this tab the name that the conversation is given in another one. */
export function useNewName(conversation: Conversation, contactId: string | null): void {
  useQuery({
    queryKey: ['name', contactId],
    queryFn: async () => {
      await conversation.readName();
      return contactId;
    },
    enabled: contactId !== null,
    // It has come with the conversation.
    initialData: contactId,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
