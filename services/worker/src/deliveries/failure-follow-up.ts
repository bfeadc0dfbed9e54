import { isAppChannel, type AcceptedTurn, type TenantSettings, type TurnRecord } from '@concierge/contract';
import type { TurnRun } from '@concierge/turn';
import type { Lenders } from '../capabilities/turn-capabilities.ts';
import type { FollowUp } from '../turn-runner.ts';

const SORRY = 'Sorry, something went wrong here and I could not answer. Please try again in a few minutes.';
const SORRY_HANDED_OVER = 'Sorry, I could not answer this. A colleague has been told and will get back to you here.';

type FailureSettings = NonNullable<TenantSettings['onFailure']>;

/**
 * A contact on a chat app sees no error: without a word they would wait for an answer that does not come. They are told as the tenant's settings say, by
 * a message beside the conversation: the stream of the turn ends with its error, and the session holds nothing that no agent said.
 */
export function failureFollowUp(askPerson: Lenders['askPerson']): FollowUp {
  return async (run, _session, record) => {
    const { scope, turn } = run;
    if (record.status !== 'failed' || record.joinedTo !== undefined || turn.chatApp === undefined) return;
    const { onFailure = {}, handoff = {} } = await scope.settings();
    if (onFailure.action === 'silent') return;
    if (onFailure.action === 'handoff') {
      await handOver(run, record, askPerson);
      // The handoff has a notice of its own.
      if (handoff.notice === undefined) await tell(run, 'notice', onFailure);
      return;
    }
    // A person has it: what the agent could not say is theirs to say.
    if (!(await scope.handoffs.isPaused(turn.sessionId))) await tell(run, 'answer', onFailure);
  };
}

async function handOver(run: TurnRun, { error }: TurnRecord, askPerson: Lenders['askPerson']): Promise<void> {
  const { agent, sessionId, turnId } = run.turn;
  const reason = `The agent could not answer: ${error?.message ?? 'its turn failed.'}`;
  await askPerson(run)({ sessionId, reason, hours: undefined, by: { kind: 'agent', agent, turnId } });
}

/** An `answer` is held back while a person has the conversation, a `notice` says that one is asked for. */
async function tell({ scope, turn }: TurnRun, kind: 'answer' | 'notice', { notice }: FailureSettings): Promise<void> {
  const place = placeOf(turn);
  if (place === undefined) return;
  const { sessionId, agent, turnId, acceptedAtMs } = turn;
  const text = notice ?? (kind === 'notice' ? SORRY_HANDED_OVER : SORRY);
  const inboundAt = new Date(acceptedAtMs).toISOString();
  await scope.outbox.accept({ kind, ...place, sessionId, text, agent, turnId, callId: 'failure', inboundAt });
}

/** Where an answer would have gone, as the answer to that message. */
function placeOf({ channel, chatApp }: AcceptedTurn) {
  if (chatApp === undefined || !isAppChannel(channel)) return undefined;
  const { address, isGroup, messageRef } = chatApp;
  return { channel, to: address.to, ...(address.thread !== null && { thread: address.thread }), ...(isGroup && { replyTo: messageRef }) };
}
