import { isAppChannel } from '@concierge/contract';
import { lastReplyOf } from '@concierge/tenant';
import type { FollowUp } from '../turn-runner.ts';

/** The reply of a turn that came from a chat app goes back to it: into the outbox, once, however often this is called. */
export const answerFollowUp: FollowUp = async ({ scope, turn }, session, record) => {
  const { chatApp, channel, turnId } = turn;
  if (chatApp === undefined || !isAppChannel(channel)) return;
  if (record.status !== 'done' || record.joinedTo !== undefined || record.heldBack !== undefined) return;
  const text = lastReplyOf(session, turnId);
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
