import { z } from 'zod';
import { DeliveryState, DeliveryView } from '../channels/delivery.ts';
import { cursorParameter, limitParameter, pageHeaders } from './parameter.ts';
import { defineRoute } from './route.ts';

const params = z.object({ id: z.string().min(1).max(64) });

export const listDeliveries = defineRoute({
  id: 'listDeliveries',
  method: 'get',
  path: '/api/deliveries',
  tag: 'deliveries',
  summary: 'List messages to channels and what became of them, newest first',
  description:
    'Messages are known for 30 days. Those with the state `failed`, `unknown`, `expired` or `withheld` are not tried again by themselves.',
  auth: 'key',
  scopes: ['admin', 'read'],
  query: z.strictObject({ status: DeliveryState.optional(), limit: limitParameter, cursor: cursorParameter }),
  answers: { 200: { description: 'Messages, without their parts.', json: z.array(DeliveryView), headers: pageHeaders } },
  errors: [],
});

export const getDelivery = defineRoute({
  id: 'getDelivery',
  method: 'get',
  path: '/api/deliveries/{id}',
  tag: 'deliveries',
  summary: 'One message, and what became of each of its parts',
  auth: 'key',
  scopes: ['admin', 'read'],
  params,
  answers: { 200: { description: 'The message.', json: DeliveryView } },
  errors: ['not_found'],
});

export const redriveDelivery = defineRoute({
  id: 'redriveDelivery',
  method: 'post',
  path: '/api/deliveries/{id}/redrive',
  tag: 'deliveries',
  summary: 'Send again what did not arrive',
  description:
    'For a message with the state `failed`, `unknown`, `expired` or `withheld`. Parts that the provider has taken are not sent again; parts with an unknown outcome are, so look first whether they have arrived.',
  auth: 'key',
  scopes: ['admin'],
  params,
  answers: { 202: { description: 'The message, which is on its way again.', json: DeliveryView } },
  errors: ['not_found', 'conflict'],
});
