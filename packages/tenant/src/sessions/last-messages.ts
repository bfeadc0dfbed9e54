import { codePoints, limits, type SessionView, type TurnRecord } from '@concierge/contract';
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

/** The reader sees that there was more, in any language. */
const ENDS_EARLY = '\n\n[…]';

/**
 * The agent's last text of a turn, as much of it as a message may hold; empty when there was none. Its text before tool
 * calls is not part of the reply.
 */
export function findLastReply({ messages }: Pick<SessionView, 'messages'>, turnId: string): string {
  const last = messages.findLast((message) => message.turnId === turnId && message.role === 'assistant');
  const text = last?.role === 'assistant' ? last.text.trim() : '';
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  // As many UTF-16 units are never more code points.
  return `${text.slice(0, limits.messageMaxCharacters - ENDS_EARLY.length).toWellFormed()}${ENDS_EARLY}`;
}
