import { z } from 'zod';
import { appNameOf, type MessagingChannel } from '../channel-definitions.ts';
import { limits } from '../limits.ts';
import { defineRoute } from './route.ts';

/** Free text on purpose: an unknown channel or tenant gets the same 401 as a wrong signature. */
const name = z.string().max(4096);
const params = z.object({ channel: name, tenantId: name });

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
  answers: {
    200: {
      description:
        'Every message in it is accepted on disk. Empty, but for the handshake of a provider that makes one by POST: the challenge, as it was sent.',
      text: 'text/plain; charset=utf-8',
    },
  },
  // 503 with Retry-After: what could not be accepted is brought again, and what was is known then.
  errors: ['invalid_json', 'overloaded'],
});

/** The paths that lead to a binding: first the one with the channel's public name, which providers are given. */
export function webhookPaths(channel: MessagingChannel, tenantId: string): readonly [string, string] {
  const pathOf = (spelling: string): string => receiveWebhook.path.replace('{channel}', spelling).replace('{tenantId}', tenantId);
  return [pathOf(appNameOf(channel)), pathOf(channel)];
}
