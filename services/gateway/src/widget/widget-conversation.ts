import { createHash } from 'node:crypto';
import { limits, type SessionMessage, type WidgetConversation, type WidgetMessage } from '@concierge/contract';
import type { VisitorCaller } from './visitor.ts';

/**
 * A conversation as its visitor sees it, and a tag that changes whenever that does. `null`: it still has the tag that
 * is known.
 */
export async function tellConversation(
  { scope, sessionId }: Pick<VisitorCaller, 'scope' | 'sessionId'>,
  knownTag: string | undefined,
): Promise<{ readonly tag: string; readonly conversation: WidgetConversation | null }> {
  const [session, withPerson] = await Promise.all([scope.sessions.load(sessionId), scope.handoffs.isPaused(sessionId)]);
  // Not the bare revision: after a conversation was removed, another one counts from 1 again.
  const tag = tagOf([session?.createdAt ?? '', String(session?.revision ?? 0), String(withPerson)]);
  if (tag === knownTag) return { tag, conversation: null };
  const told = session === undefined ? undefined : await scope.sessions.conversation(sessionId);
  const messages = messagesOf(told?.messages ?? []).slice(-limits.widgetMessagesShown);
  const askAgainSeconds = withPerson ? limits.widgetAskWithPersonSeconds : limits.widgetAskSeconds;
  return { tag, conversation: { messages, withPerson, askAgainSeconds } };
}

/**
 * The messages, without tool calls and their results. The paragraphs that an agent wrote between its tools in one turn
 * are one message.
 */
function messagesOf(messages: readonly SessionMessage[]): WidgetMessage[] {
  const told: WidgetMessage[] = [];
  for (const message of messages) {
    if (message.role === 'tool' || message.text === '') continue;
    const { id, turnId, text, at } = message;
    const from = message.role === 'user' ? 'visitor' : message.by === undefined ? 'agent' : 'person';
    const last = told.at(-1);
    if (from === 'agent' && last?.from === 'agent' && last.turnId === turnId)
      told[told.length - 1] = { ...last, text: `${last.text}\n\n${text}` };
    else told.push({ id, turnId, from, text, at });
  }
  return told;
}

function tagOf(parts: readonly string[]): string {
  return `"${createHash('sha256').update(parts.join('\n')).digest('base64url').slice(0, 22)}"`;
}
