import { channelDefinitions, type DeliveryState } from '@concierge/contract';
import { Delivery } from '@concierge/tenant';
import type { DeliveryReported } from '../deliveries/delivery-receipts.ts';
import { messageState } from './webhook-event-factories.ts';
import type { WebhookEvents } from './webhook-events.ts';

/** Emits an event for each message that has arrived or will not. @throws the error of the disk */
export function emitDeliveries(outgoing: Pick<WebhookEvents, 'emit'>): DeliveryReported {
  return async (scope, delivery) => {
    const end = endOf(delivery);
    if (end === undefined) return;
    const { id: messageId, kind, channel, sessionId } = delivery.message;
    // The handoff request writes its notices itself: they belong to no turn.
    const turnId = kind === 'notice' ? null : delivery.message.turnId;
    const { state } = delivery;
    const error = end === 'arrived' ? null : (delivery.problem ?? { code: state, message: 'The message was not delivered.' });
    await outgoing.emit(scope, messageState({ messageId, channel, sessionId, turnId, state, at: reachedAt(delivery, end), error }));
  };
}

function endOf({ state, message }: Delivery): 'arrived' | 'lost' | undefined {
  const states: Readonly<Record<DeliveryState, 'arrived' | 'lost' | undefined>> = {
    waiting: undefined,
    // A provider without receipts reports no more than this: as far as is known, the message has arrived.
    sent: channelDefinitions[message.channel].hasReceipts ? undefined : 'arrived',
    delivered: 'arrived',
    read: 'arrived',
    failed: 'lost',
    unknown: 'lost',
    expired: 'lost',
    withheld: 'lost',
  };
  return states[state];
}

/**
 * When the message first reached this end, the same for every caller: later states, such as `read` after `delivered`,
 * change nothing.
 */
function reachedAt(delivery: Delivery, end: 'arrived' | 'lost'): string {
  const { message, steps } = delivery;
  const first = steps.findIndex((_step, index) => endOf(new Delivery(message, steps.slice(0, index + 1))) === end);
  return steps[first]?.at ?? delivery.updatedAt;
}
