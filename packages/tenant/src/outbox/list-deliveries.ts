import type { DeliveryState } from '@concierge/contract';
import { decodeCursor, encodeCursor, type Page, type Position } from '@concierge/index';
import type { Delivery } from './delivery.ts';
import type { Outbox } from './outbox.ts';

export interface DeliveriesQuery {
  readonly status?: DeliveryState | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

type DeliverySource = Pick<Outbox, 'dead' | 'onTheirWay' | 'settledDays' | 'listSettled'>;

/** States of messages that arrived; all others are on their way or dead, and few. */
const settledStates: ReadonlySet<DeliveryState> = new Set<DeliveryState>(['sent', 'delivered', 'read']);

/**
 * Newest acceptance first. Reads the settled ones day by day, so many days as a page needs.
 * @throws AppError invalid_request
 */
export async function listDeliveries(outbox: DeliverySource, { status, limit, cursor }: DeliveriesQuery): Promise<Page<Delivery>> {
  const after = cursor === undefined ? null : decodeCursor('deliveries', cursor);
  const fits = (delivery: Delivery): boolean => (status === undefined || delivery.state === status) && isBehind(delivery, after);
  const found = new Map([...(await outbox.onTheirWay()), ...(await outbox.dead())].filter(fits).map((each) => [each.message.id, each]));
  const wantsSettled = status === undefined || settledStates.has(status);
  for (const day of wantsSettled ? await outbox.settledDays() : []) {
    if (after !== null && Date.parse(day) > after.atMs) continue;
    // One that moves while we look may be in both places: what was read last is what it is now.
    for (const delivery of await outbox.listSettled(day)) if (fits(delivery)) found.set(delivery.message.id, delivery);
    if ([...found.values()].filter(({ message }) => message.acceptedAt >= day).length > limit) break;
  }
  const all = [...found.values()].toSorted(newestFirst);
  const items = all.slice(0, limit);
  const last = items.at(-1);
  return { items, nextCursor: all.length > limit && last !== undefined ? encodeCursor('deliveries', toPosition(last)) : null };
}

function toPosition({ message }: Delivery): Position {
  return { atMs: Date.parse(message.acceptedAt), id: message.id };
}

function newestFirst(left: Delivery, right: Delivery): number {
  return right.message.acceptedAt.localeCompare(left.message.acceptedAt) || (left.message.id < right.message.id ? 1 : -1);
}

function isBehind(delivery: Delivery, after: Position | null): boolean {
  if (after === null) return true;
  const { atMs, id } = toPosition(delivery);
  return atMs < after.atMs || (atMs === after.atMs && id < after.id);
}
