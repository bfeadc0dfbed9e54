import type { TurnRecord } from '@concierge/contract';
import type { SessionStore } from './session-store.ts';

/**
 * When the contact of a conversation last wrote from a channel: the channels' reply windows count from then. What an
 * API or a schedule wrote in their place does not count. undefined when they never did.
 */
export async function lastInboundMs(
  sessions: Pick<SessionStore, 'load' | 'readSessionTurns'>,
  sessionId: string,
): Promise<number | undefined> {
  const session = await sessions.load(sessionId);
  if (session === undefined) return undefined;
  // Nearly always it is among the last turns, and the history need not be read.
  const last = findNewest(session.turns) ?? findNewest(await sessions.readSessionTurns(session));
  return last === undefined ? undefined : Date.parse(last.acceptedAt);
}

function findNewest(turns: readonly TurnRecord[]): TurnRecord | undefined {
  return turns
    .filter(({ origin }) => origin === 'webhook')
    .toSorted((a, b) => a.acceptedAt.localeCompare(b.acceptedAt))
    .at(-1);
}
