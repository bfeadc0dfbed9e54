import { codePoints, isAppChannel, limits, type Session } from '@concierge/contract';
import type { FollowUp } from '../turn-runner.ts';

/** The reply of a turn that came from a chat app goes back to it: into the outbox, once, however often this is called. */
export const answerFollowUp: FollowUp = async ({ scope, turn }, session, record) => {
  const { chatApp, channel, turnId } = turn;
  if (chatApp === undefined || !isAppChannel(channel)) return;
  if (record.status !== 'done' || record.joinedTo !== undefined || record.heldBack !== undefined) return;
  const text = lastWords(session, turnId);
  if (text === '') return;
  const { address, isGroup, messageRef } = chatApp;
  await scope.outbox.accept({
    kind: 'answer',
    channel,
    to: address.to,
    ...(address.thread !== null && { thread: address.thread }),
    // Alone with somebody it is plain what is answered.
    ...(isGroup && { replyTo: messageRef }),
    sessionId: turn.sessionId,
    text,
    agent: turn.agent,
    turnId,
    callId: 'answer',
    inboundAt: new Date(turn.acceptedAtMs).toISOString(),
  });
};

/** What the agent said in the end; what it said before its tool calls was said to itself. */
function lastWords({ messages }: Session, turnId: string): string {
  const last = messages.findLast((message) => message.turnId === turnId && message.role === 'assistant');
  const text = last?.role === 'assistant' ? last.text.trim() : '';
  if (codePoints(text) <= limits.messageMaxCharacters) return text;
  // As many UTF-16 units are never more code points.
  return text.slice(0, limits.messageMaxCharacters).toWellFormed();
}
