import { hash } from 'node:crypto';
import type { InboundRetraction } from '@concierge/channel';
import { AppError } from '@concierge/contract';
import type { Turns } from '@concierge/turn';
import type { BoundChannel } from './bound-channel.ts';
import { dedupeIdOf } from './turn-of-message.ts';

/** The outcome of a retraction. */
type Outcome = 'accepted' | 'unknown' | 'overflow';

/**
 * Takes back a sender's message. A waiting message is not answered; an answered one is removed from the conversation by
 * a separate turn, behind the one that runs there: only one writes to a conversation at a time. On disk when it
 * returns. @throws what Turns.accept throws, when the provider is to deliver it again
 */
export async function takeBack(
  turns: Pick<Turns, 'accept' | 'cancel' | 'findAccepted'>,
  from: BoundChannel,
  { providerMessageId }: InboundRetraction,
): Promise<Outcome> {
  const { scope, channel } = from;
  const taken = dedupeIdOf(from, providerMessageId);
  const turn = await turns.findAccepted(scope, taken);
  if (turn === undefined) return 'unknown';
  // One that runs is answered: others may be answered with it, and the answer may be out.
  if (turn.status === 'waiting') await turns.cancel(scope, turn.id);
  const dedupeId = `${taken}:retraction`;
  try {
    await turns.accept(scope, {
      origin: 'retraction',
      agent: turn.agent,
      // Useless: nothing runs in it.
      authority: 'cs',
      channel,
      sender: null,
      contactId: turn.contact_id,
      text: '',
      attachments: [],
      busy: 'queue',
      dedupeId,
      requestHash: hash('sha256', dedupeId),
      keyId: null,
      retracts: turn.id,
    });
    return 'accepted';
  } catch (error) {
    if (error instanceof AppError && error.code === 'too_many_waiting') return 'overflow';
    throw error;
  }
}
