import { isAppChannel } from '@concierge/contract';
import type { FollowUp } from './turn-runner.ts';

/** What a person said in a conversation on a chat app goes where that conversation is. */
export const sendPersonsWords: FollowUp = async ({ scope, turn }, { id: sessionId, agent, channel, chatApp }, record) => {
  if (turn.origin !== 'person' || record.status !== 'done' || chatApp === undefined || !isAppChannel(channel)) return;
  const { to, thread } = chatApp;
  const { turnId, text } = turn;
  await scope.outbox.accept({
    kind: 'person',
    channel,
    to,
    ...(thread !== null && { thread }),
    sessionId,
    text,
    agent,
    turnId,
    callId: 'person',
  });
};
