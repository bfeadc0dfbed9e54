import { hash } from 'node:crypto';
import { AppError, type TurnInput } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { TurnReceipt, Turns } from '@concierge/turn';

interface RetryContext {
  readonly scope: TenantScope;
  readonly turns: Turns;
}

/**
 * Accepts once more, in the same session, what an ended turn had asked. Its rights are those of its agent, never more
 * than the first time; its id follows from the first one's, so that a second retry attaches to the first.
 * @throws AppError not_found, conflict (it has not failed), and what Turns.accept throws
 */
export async function retryTurn({ scope, turns }: RetryContext, turnId: string): Promise<TurnReceipt> {
  const turn = await turns.find(scope, turnId);
  if (turn === undefined) throw new AppError('not_found', `${scope.tenantId} has no turn ${turnId}.`);
  if (turn.status !== 'failed' && turn.status !== 'cancelled')
    throw new AppError('conflict', `${turnId} is ${turn.status}: only a failed or cancelled turn is tried again.`);
  const session = await scope.sessions.load(turn.contact_id);
  const asked = (await scope.sessions.view(turn.contact_id))?.messages.find(
    (message) => message.role === 'user' && message.turnId === turnId,
  );
  const record = (await scope.index.findTurn(turnId))?.record;
  if (session === undefined || record === undefined || asked?.role !== 'user')
    throw new AppError('not_found', `What ${turnId} asked is not in its session any more.`);
  const input: TurnInput = {
    origin: turn.origin,
    agent: turn.agent,
    authority: turn.agent === 'admin' ? 'admin' : 'cs',
    channel: turn.channel,
    sender: session.sender,
    contactId: turn.contact_id,
    text: asked.text,
    attachments: asked.attachments ?? [],
    busy: 'queue',
    dedupeId: `retry:${turnId}`,
    requestHash: hash('sha256', `retry:${turnId}`),
    keyId: record.keyId,
  };
  return await turns.accept(scope, input);
}
