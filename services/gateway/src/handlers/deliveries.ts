import { AppError, routes } from '@concierge/contract';
import { listDeliveries } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';
import { pageLink } from './page-link.ts';

type DeliveryHandlers = Pick<Handlers, 'listDeliveries' | 'getDelivery' | 'redriveDelivery'>;

/** Outgoing messages on channels: workers send them, these handlers show them. */
export function deliveryHandlers(): DeliveryHandlers {
  return {
    listDeliveries: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await listDeliveries(scope.outbox, query);
      const { limit, status } = query;
      const headers = pageLink(routes.listDeliveries.path, { limit, status }, nextCursor);
      return { kind: 'answer', status: 200, json: items.map((delivery) => delivery.view()), headers };
    },
    getDelivery: async ({ caller: { scope }, params }) => {
      const delivery = await scope.outbox.delivery(params.id);
      if (delivery === undefined) throw new AppError('not_found', 'There is no such message.');
      return { kind: 'answer', status: 200, json: delivery.fullView() };
    },
    redriveDelivery: async ({ caller: { scope, key }, params }) => {
      const delivery = await scope.outbox.redrive(params.id, { kind: 'key', keyId: key.id });
      return { kind: 'answer', status: 202, json: delivery.fullView() };
    },
  };
}
