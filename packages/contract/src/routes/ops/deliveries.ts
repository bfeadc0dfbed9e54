import { z } from 'zod';
import { RedriveBody, Redriven, StuckDeliveries } from '../../channels/stuck-delivery.ts';
import { TenantId } from '../../tenants/tenant.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from '../route.ts';

const operator = { tag: 'operations', auth: 'operator', scopes: [] } as const;

export const listStuckDeliveries = defineRoute({
  ...operator,
  id: 'listStuckDeliveries',
  method: 'get',
  path: '/ops/api/deliveries',
  summary: 'What has not arrived, by tenant and channel: messages and webhook events that wait, are tried again, or are dead',
  description: 'Tenants by id; `limit`: of so many tenants at once. Of one tenant 500 of each kind are read at most.',
  query: z.strictObject({ tenant: TenantId.optional(), limit: limitParameter, cursor: cursorParameter }),
  answers: { 200: { description: 'Those of which there are any.', json: z.array(StuckDeliveries), headers: pageHeaders } },
  errors: ['not_found'],
});

export const redriveDeliveries = defineRoute({
  ...operator,
  id: 'redriveDeliveries',
  method: 'post',
  path: '/ops/api/deliveries/redrive',
  summary: 'Send dead letters again, a few at a time',
  description:
    'A dry run unless `dryRun` is false: it says how many and whose. Messages that may have arrived, or must not be sent, are left out: each of those is sent again by itself. Go on with `nextCursor`, and stop by not asking again.',
  body: { kind: 'json', schema: RedriveBody },
  answers: { 200: { description: 'What is, or would be, on its way again, and what not.', json: Redriven } },
  errors: ['not_found'],
});

export const redriveOperatedDelivery = defineRoute({
  ...operator,
  id: 'redriveOperatedDelivery',
  method: 'post',
  path: '/ops/api/deliveries/{id}/redrive',
  summary: 'Send one dead letter again',
  description: 'As `POST /api/deliveries/{id}/redrive`, or for a webhook event `POST /api/events/{id}/redrive`.',
  params: z.object({ id: z.string().min(1).max(64) }),
  query: z.strictObject({ tenant: TenantId.meta({ description: 'Whose it is.' }) }),
  answers: {
    202: { description: 'It is on its way again.', json: z.object({ tenantId: TenantId, id: z.string() }).meta({ id: 'RedrivenOne' }) },
  },
  errors: ['not_found', 'conflict'],
});
