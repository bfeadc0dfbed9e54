import { z } from 'zod';
import { limits } from '../limits.ts';
import { defineRoute } from './route.ts';

/** Free text on purpose: an unknown channel or tenant gets the same 401 as a wrong signature. */
const params = z.object({ channel: z.string(), tenantId: z.string() });

export const verifyWebhook = defineRoute({
  id: 'verifyWebhook',
  method: 'get',
  path: '/webhook/{channel}/{tenantId}',
  tag: 'webhooks',
  summary: 'Handshake of a channel provider',
  auth: 'signature',
  scopes: [],
  params,
  answers: { 200: { description: 'The challenge, as it was sent.', text: 'text/plain; charset=utf-8' } },
  errors: [],
});

/** POST /webhook/{channel}/{tenantId} (service interface). */
export const receiveWebhook = defineRoute({
  id: 'receiveWebhook',
  method: 'post',
  path: '/webhook/{channel}/{tenantId}',
  tag: 'webhooks',
  summary: 'Inbound messages of a channel provider',
  auth: 'signature',
  scopes: [],
  params,
  body: { kind: 'raw', maxBytes: limits.webhookBodyMaxBytes },
  answers: { 200: { description: 'Every message in it is accepted on disk.' } },
  errors: [],
});
