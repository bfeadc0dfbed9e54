import { channelDefinitions, type DeliveryState } from '@concierge/contract';
import { Delivery } from '@concierge/tenant';
import type { DeliveryReported } from '../deliveries/delivery-receipts.ts';
import { messageState } from './webhook-event-factories.ts';
import type { WebhookEvents } from './webhook-events.ts';

/** Tells of messages that have arrived, or will not. @throws what the disk says */
export function emitDeliveries(outgoing: Pick<WebhookEvents, 'emit'>): DeliveryReported {
  return async (scope, delivery) => {
    const end = endOf(delivery);
    if (end === undefined) return;
    const { id: messageId, kind, channel, sessionId } = delivery.message;
    // Who asks for a person writes the notices of it: no turn says them.
    const turnId = kind === 'notice' ? null : delivery.message.turnId;
    const { state } = delivery;
    const error = end === 'arrived' ? null : (delivery.problem ?? { code: state, message: 'The message was not delivered.' });
    await outgoing.emit(scope, messageState({ messageId, channel, sessionId, turnId, state, at: reachedAt(delivery, end), error }));
  };
}

function endOf({ state, message }: Delivery): 'arrived' | 'lost' | undefined {
  const states: Readonly<Record<DeliveryState, 'arrived' | 'lost' | undefined>> = {
    waiting: undefined,
    // A provider without receipts says no more than this: as far as is known, the message has arrived.
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

/** When it first came to this, whoever looks and however often: what follows, such as `read` after `delivered`, changes nothing. */
function reachedAt(delivery: Delivery, end: 'arrived' | 'lost'): string {
  const { message, steps } = delivery;
  const first = steps.findIndex((_step, index) => endOf(new Delivery(message, steps.slice(0, index + 1))) === end);
  return steps[first]?.at ?? delivery.updatedAt;
}
