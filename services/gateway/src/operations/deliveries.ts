import type { DeadLetters } from '@concierge/core/stuck-deliveries';
import { routes } from '@concierge/contract';
import { pageLink, type Handlers } from '../http/call.ts';

type StuckHandlers = Pick<Handlers, 'listStuckDeliveries' | 'redriveDeliveries' | 'redriveOperatedDelivery'>;

/** Messages and webhook events of all tenants that have not arrived. Workers send what is taken up, within seconds. */
export function stuckDeliveryHandlers({ deadLetters }: { readonly deadLetters: DeadLetters }): StuckHandlers {
  return {
    listStuckDeliveries: async ({ query }) => {
      const { items, nextCursor } = await deadLetters.list(query);
      const { tenant, limit } = query;
      const headers = pageLink(routes.listStuckDeliveries.path, { tenant, limit }, nextCursor);
      return { kind: 'answer', status: 200, json: items, headers };
    },
    redriveDeliveries: async ({ body, requestId }) => ({
      kind: 'answer',
      status: 200,
      json: await deadLetters.redriveSome(body, { requestId }),
    }),
    redriveOperatedDelivery: async ({ params: { id }, query: { tenant: tenantId }, requestId }) => {
      await deadLetters.redriveOne({ tenantId, id }, { requestId });
      return { kind: 'answer', status: 202, json: { tenantId, id } };
    },
  };
}
