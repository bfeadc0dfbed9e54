import { routes, type WaitsFor } from '@concierge/contract';
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import type { ChatTurn } from '../../../src/chat/chat-turn.ts';
import { useRead } from '../parts/use-api.tsx';
import { WaitReason } from '../parts/wait-reason.tsx';

/** What begins at once needs no reason, and asking for it costs a request. */
const ASKED_AFTER_MS = 1000;

const TurnWaits = createContext<ReadonlyMap<string, WaitsFor>>(new Map());

export interface TurnWaitsProviderProps {
  /** Null: the conversation has not begun. */
  readonly contactId: string | null;
  readonly turns: readonly ChatTurn[];
  /** The key may read the list of turns. */
  readonly mayList: boolean;
  readonly children: ReactNode;
}

/** Finds out why turns of a conversation wait, as long as one does; the feed says when to ask again. */
export function TurnWaitsProvider({ contactId, turns, mayList, children }: TurnWaitsProviderProps): ReactNode {
  const isWaiting = useLasting(turns.some(({ state, isFromStaff }) => state.at === 'waiting' && !isFromStaff));
  const query = { contact_id: contactId ?? '', status: 'waiting' as const, limit: 100 };
  const { data } = useRead(routes.listTurns, { query }, { isEnabled: mayList && isWaiting && contactId !== null });
  const waits = new Map<string, WaitsFor>();
  for (const { id, waitsFor } of isWaiting ? (data ?? []) : []) if (waitsFor !== undefined) waits.set(id, waitsFor);
  return <TurnWaits value={waits}>{children}</TurnWaits>;
}

/** Whether it has been so for a while. */
function useLasting(isSo: boolean): boolean {
  const [isLasting, setLasting] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLasting(isSo), isSo ? ASKED_AFTER_MS : 0);
    return () => {
      clearTimeout(timer);
    };
  }, [isSo]);
  return isSo && isLasting;
}

/** Why this turn waits; the other words as long as that is not known. */
export function TurnWait({ turn, children }: { readonly turn: ChatTurn; readonly children: ReactNode }): ReactNode {
  const waits = useContext(TurnWaits);
  const waitsFor = turn.turnId === null || turn.state.at !== 'waiting' ? undefined : waits.get(turn.turnId);
  return waitsFor === undefined ? children : <WaitReason waitsFor={waitsFor} />;
}
