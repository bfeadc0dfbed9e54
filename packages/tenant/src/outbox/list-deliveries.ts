import type { DeliveryState } from '@concierge/contract';
import { CursorPages, type Page } from '@concierge/index';
import type { Delivery } from './delivery.ts';
import type { Outbox } from './outbox.ts';

export interface DeliveriesQuery {
  readonly status?: DeliveryState | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

type DeliverySource = Pick<Outbox, 'dead' | 'onTheirWay' | 'settledDays' | 'settledOf'>;

/** States of messages that arrived; all others are on their way or dead, and few. */
const settledStates: ReadonlySet<DeliveryState> = new Set<DeliveryState>(['sent', 'delivered', 'read']);

const pages = new CursorPages<Delivery>('deliveries', ({ message }) => ({ atMs: Date.parse(message.acceptedAt), id: message.id }));

/**
 * Newest acceptance first. Reads the settled ones day by day, so many days as a page needs.
 * @throws AppError invalid_request
 */
export async function listDeliveries(outbox: DeliverySource, { status, limit, cursor }: DeliveriesQuery): Promise<Page<Delivery>> {
  const after = pages.readCursor(cursor);
  const fits = (delivery: Delivery): boolean => (status === undefined || delivery.state === status) && pages.isBehind(delivery, after);
  const found = new Map([...(await outbox.onTheirWay()), ...(await outbox.dead())].filter(fits).map((each) => [each.message.id, each]));
  const wantsSettled = status === undefined || settledStates.has(status);
  for (const day of wantsSettled ? await outbox.settledDays() : []) {
    if (after !== null && Date.parse(day) > after.atMs) continue;
    // One that moves while we look may be in both places: what was read last is what it is now.
    for (const delivery of await outbox.settledOf(day)) if (fits(delivery)) found.set(delivery.message.id, delivery);
    if ([...found.values()].filter(({ message }) => message.acceptedAt >= day).length > limit) break;
  }
  return pages.cutPage([...found.values()], { limit });
}
