import type { RunDelivery, ScheduleRun } from '@concierge/contract';

/** A run on one line: when, what became of it, and of its reply. */
export function describeRun({ id, scheduledAt, trigger, outcome, reason, missedSince, turn, delivery }: ScheduleRun): string {
  const asked = trigger === 'manual' ? ' (asked for)' : '';
  const because = reason === null ? '' : `: ${reason}`;
  const more = missedSince === null ? '' : `; others before it, since ${missedSince}, have no entry`;
  const ended = turn === null ? '' : `; turn ${turn.id} ${turn.status === 'waiting' ? 'is under way' : turn.status}${wordsOf(turn.error)}`;
  const session = turn === null ? '' : `, conversation ${turn.contact_id}`;
  const delivered = delivery === null ? '' : `; reply ${wordsOfDelivery(delivery)}${wordsOf(delivery.reason)}`;
  return `${id} ${scheduledAt}${asked} ${outcome}${because}${more}${ended}${session}${delivered}`;
}

function wordsOfDelivery({ status, eventId }: RunDelivery): string {
  return status === 'kept' && eventId !== null ? 'is being sent to its webhook' : deliveryWords[status];
}

const deliveryWords: Readonly<Record<RunDelivery['status'], string>> = {
  kept: 'waits to be sent',
  nothing_to_send: 'not delivered: there was none',
  forgotten: 'was accepted to be sent; what became of it is not known any more',
  sent: 'sent',
  delivered: 'delivered',
  read: 'delivered and read',
  failed: 'not delivered',
  unknown: 'may have been sent or not',
  expired: 'not sent in time',
  withheld: 'withheld',
};

function wordsOf(reason: string | null): string {
  return reason === null ? '' : ` (${reason})`;
}
