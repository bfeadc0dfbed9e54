import { codePoints, limits, type SessionView } from '@concierge/contract';

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
