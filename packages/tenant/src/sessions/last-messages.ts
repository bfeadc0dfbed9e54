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
  return fitText(last?.role === 'assistant' ? last.text : '');
}

/**
 * What a contact gets who waits for an answer: the last reply, and where that is empty the agent's text before it.
 * Models write an answer beside a call, and nothing behind its result. Not where the agent has sent a message by
 * itself, or has asked for staff.
 */
export function findAnswer({ messages }: Pick<SessionView, 'messages'>, turnId: string): string {
  const own = messages.filter((message) => message.turnId === turnId);
  const reply = findLastReply({ messages: own }, turnId);
  if (reply !== '' || hasReachedContact({ messages: own }, turnId)) return reply;
  const said = own.findLast((message) => message.role === 'assistant' && message.text.trim() !== '');
  return fitText(said?.role === 'assistant' ? said.text : '');
}

/** Whether the agent has sent a message by itself in the turn, or has asked for staff. */
export function hasReachedContact({ messages }: Pick<SessionView, 'messages'>, turnId: string): boolean {
  return messages.some(
    (message) =>
      message.turnId === turnId && message.role === 'tool' && !message.isError && (message.name === 'reply' || message.name === 'handoff'),
  );
}

function fitText(whole: string): string {
  const text = whole.trim();
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  // As many UTF-16 units are never more code points.
  return `${text.slice(0, limits.messageMaxCharacters - ENDS_EARLY.length).toWellFormed()}${ENDS_EARLY}`;
}
