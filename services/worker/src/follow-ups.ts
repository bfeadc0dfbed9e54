import { isMessagingChannel, type AcceptedTurn, type Session, type TenantSettings, type TurnRecord } from '@concierge/contract';
import { findLastReply } from '@concierge/tenant';
import { turnEnded, type WebhookEvents, type TurnRun } from '@concierge/turn';
import type { CapabilityFactories } from './capabilities/turn-capabilities.ts';
import type { FollowUp } from './turn/publish-turn.ts';

const SORRY = 'Sorry, something went wrong here and I could not answer. Please try again in a few minutes.';
const SORRY_HANDED_OVER = 'Sorry, I could not answer this. A colleague has been notified and will get back to you here.';

type FailureSettings = NonNullable<TenantSettings['onFailure']>;

/**
 * Puts what a conversation on a channel is sent at the end of a turn into the outbox: the agent's answer, what a staff
 * member wrote, or the notice of a failure. Once, however often this is called.
 */
export function channelFollowUp(requestStaff: CapabilityFactories['requestStaff']): FollowUp {
  return async (run, session, record) => {
    if (session.channelAddress === undefined) return;
    await deliverStaffMessage(run, session, record);
    if (record.joinedTo !== undefined) return;
    if (record.status === 'done') await answer(run, session, record);
    if (record.status === 'failed') await reportFailure(run, record, requestStaff);
  };
}

async function answer({ scope, turn }: TurnRun, session: Session, { heldBack }: TurnRecord): Promise<void> {
  const recipient = toRecipient(turn);
  if (recipient === undefined || heldBack !== undefined) return;
  const { sessionId, agent, turnId, acceptedAtMs } = turn;
  const text = findLastReply(session, turnId);
  if (text === '') return;
  const inboundAt = new Date(acceptedAtMs).toISOString();
  await scope.outbox.accept({ kind: 'answer', ...recipient, sessionId, text, agent, turnId, callId: 'answer', inboundAt });
}

/** Delivers what a staff member wrote in a conversation to the conversation's channel. */
export const deliverStaffMessage: FollowUp = async ({ scope, turn }, { id: sessionId, agent, channel, channelAddress }, record) => {
  if (turn.origin !== 'person' || record.status !== 'done' || channelAddress === undefined || !isMessagingChannel(channel)) return;
  const { to, thread } = channelAddress;
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

/** Emits the end of a turn to the tenant's own systems, where one of them subscribes to it. */
export function emitTurnEnd(webhookEvents: Pick<WebhookEvents, 'emit'>): FollowUp {
  return async ({ scope, turn }, session, record) => {
    // A retraction asks nothing and gets no answer.
    if (turn.origin === 'retraction' || !(await scope.uses('events/endpoints'))) return;
    const webhookEvent = turnEnded(turn, record, async () => Promise.resolve(joinReply(session, turn.turnId)));
    if (webhookEvent !== undefined) await webhookEvents.emit(scope, webhookEvent);
  };
}

/** The whole text of the agent in the turn, as a client that does not stream gets it. */
function joinReply(session: Session, turnId: string): string {
  return session.messages.flatMap((message) => (message.role === 'assistant' && message.turnId === turnId ? [message.text] : [])).join('');
}

/**
 * A contact on a channel sees no error: without a message they would wait for an answer that does not come. They are
 * notified as the tenant's settings state, by a message beside the conversation: the stream of the turn ends with its
 * error, and the session holds nothing that no agent wrote.
 */
async function reportFailure(run: TurnRun, record: TurnRecord, requestStaff: CapabilityFactories['requestStaff']): Promise<void> {
  const { scope, turn } = run;
  if (turn.channelMessage === undefined) return;
  const { onFailure = {}, handoff = {} } = await scope.settings();
  if (onFailure.action === 'silent') return;
  if (onFailure.action === 'handoff') {
    await handOver(run, record, requestStaff);
    // The handoff sends its own notice.
    if (handoff.notice === undefined) await notifyContact(run, 'notice', onFailure);
    return;
  }
  // Staff has the conversation: they write what the agent could not.
  if (!(await scope.handoffs.isPaused(turn.sessionId))) await notifyContact(run, 'answer', onFailure);
}

async function handOver(run: TurnRun, { error }: TurnRecord, requestStaff: CapabilityFactories['requestStaff']): Promise<void> {
  const { agent, sessionId, turnId } = run.turn;
  const reason = `The agent could not answer: ${error?.message ?? 'its turn failed.'}`;
  await requestStaff(run)({ sessionId, reason, hours: undefined, by: { kind: 'agent', agent, turnId } });
}

/** An `answer` is withheld while staff has the conversation; a `notice` announces that a staff member was requested. */
async function notifyContact({ scope, turn }: TurnRun, kind: 'answer' | 'notice', { notice }: FailureSettings): Promise<void> {
  const recipient = toRecipient(turn);
  if (recipient === undefined) return;
  const { sessionId, agent, turnId, acceptedAtMs } = turn;
  const text = notice ?? (kind === 'notice' ? SORRY_HANDED_OVER : SORRY);
  const inboundAt = new Date(acceptedAtMs).toISOString();
  await scope.outbox.accept({ kind, ...recipient, sessionId, text, agent, turnId, callId: 'failure', inboundAt });
}

/** Where an answer would have gone, as the answer to that message. */
function toRecipient({ channel, channelMessage }: AcceptedTurn) {
  if (channelMessage === undefined || !isMessagingChannel(channel)) return undefined;
  const { address, isGroup, messageRef } = channelMessage;
  // In a private chat it is plain which message is answered.
  return { channel, to: address.to, ...(address.thread !== null && { thread: address.thread }), ...(isGroup && { replyTo: messageRef }) };
}
