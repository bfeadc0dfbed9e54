import { z } from 'zod';
import { ChannelSetup, ChannelTest, ConnectedChannel } from '../channels/channel-binding.ts';
import { channelDefinitions, toAppName, type MessagingChannel } from '../channel-definitions.ts';
import { SimulationBody, SimulationReceipt } from '../channels/simulation.ts';
import { Channel, isMessagingChannel } from '../channels/channel.ts';
import { limitedRecord } from '../values/values.ts';
import { defineRoute, cursorParameter, limitParameter, pageHeaders } from './route.ts';
import { DeliveryState, DeliveryView } from '../channels/delivery.ts';
import { limits } from '../limits.ts';

/** Every spelling; `web` is always there and is none of these. */
const channelParams = z.object({ channel: Channel.refine(isMessagingChannel, 'is not a messaging channel') });

/**
 * What a channel needs is known by the path: the last form lets the handler name the fields that are missing or wrong
 * for exactly this one.
 */
const body = z.union([
  ...Object.values(channelDefinitions).map(({ settings }) => settings),
  limitedRecord(z.string().max(100), z.unknown(), 100).meta({ description: 'Anything else: 400, with the fields that are wrong.' }),
]);

export const listChannels = defineRoute({
  id: 'listChannels',
  method: 'get',
  path: '/api/channels',
  tag: 'channels',
  summary: 'Connected channels',
  auth: 'key',
  scopes: ['admin', 'read'],
  answers: {
    200: { description: 'Bindings in the order of their names; of their secrets only which there are.', json: z.array(ConnectedChannel) },
  },
  errors: [],
});

export const getChannel = defineRoute({
  id: 'getChannel',
  method: 'get',
  path: '/api/channels/{channel}',
  tag: 'channels',
  summary: 'One channel: whether it works, what came and went last',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: channelParams,
  answers: { 200: { description: 'The binding.', json: ConnectedChannel } },
  errors: ['not_found'],
});

export const getChannelSetup = defineRoute({
  id: 'getChannelSetup',
  method: 'get',
  path: '/api/channels/{channel}/setup',
  tag: 'channels',
  summary: 'What connecting a channel takes: fields, webhook address, verify token',
  description: 'Also before it is connected, when `GET /api/channels/{channel}` is 404.',
  auth: 'key',
  scopes: ['admin', 'read'],
  params: channelParams,
  answers: { 200: { description: 'What to enter here and at the provider.', json: ChannelSetup } },
  errors: ['not_found'],
});

export const putChannel = defineRoute({
  id: 'putChannel',
  audit: 'channel.connect',
  method: 'put',
  path: '/api/channels/{channel}',
  tag: 'channels',
  summary: 'Connect a channel, or give it new credentials',
  description:
    'Every field of the channel, each time. The provider is asked first: credentials that it refuses, or that belong to another account, are 400 and nothing is stored. A provider that cannot be reached does not prevent it: `checks` reports that it was not asked. Secrets are sealed and never shown again.',
  auth: 'key',
  scopes: ['admin'],
  params: channelParams,
  body: { kind: 'json', schema: body },
  answers: {
    200: { description: 'It has these credentials now, and is enabled.', json: ConnectedChannel },
    201: { description: 'It is connected.', json: ConnectedChannel },
  },
  errors: ['not_found'],
});

export const deleteChannel = defineRoute({
  id: 'deleteChannel',
  audit: 'channel.disconnect',
  method: 'delete',
  path: '/api/channels/{channel}',
  tag: 'channels',
  summary: 'Disconnect a channel',
  auth: 'key',
  scopes: ['admin'],
  params: channelParams,
  answers: { 204: { description: 'Its credentials are gone; conversations stay.' } },
  errors: ['not_found'],
});

export const testChannel = defineRoute({
  id: 'testChannel',
  method: 'post',
  path: '/api/channels/{channel}/test',
  tag: 'channels',
  summary: 'Ask the provider again whether the binding works',
  auth: 'key',
  scopes: ['admin'],
  params: channelParams,
  answers: { 200: { description: 'What was found, good or bad.', json: ChannelTest } },
  errors: ['not_found'],
});

export const simulateChannel = defineRoute({
  id: 'simulateChannel',
  method: 'post',
  path: '/api/channels/{channel}/simulate',
  tag: 'channels',
  summary: 'Have a message come in as if the provider had brought it',
  description:
    'Written as the provider writes it, signed with the binding’s own secret, and taken by the same path as its webhooks. The agent answers it; its answer, and whatever else goes to this contact, is recorded as sent and never reaches the provider.',
  auth: 'key',
  scopes: ['admin'],
  params: channelParams,
  body: { kind: 'json', schema: SimulationBody },
  answers: { 202: { description: 'It is accepted.', json: SimulationReceipt } },
  errors: ['not_found', 'session_busy', 'overloaded', 'too_many_waiting'],
});

const deliveryParams = z.object({ id: z.string().min(1).max(64) });

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
  params: deliveryParams,
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
  params: deliveryParams,
  answers: { 202: { description: 'The message, which is on its way again.', json: DeliveryView } },
  errors: ['not_found', 'conflict'],
});

/** Free text on purpose: an unknown channel or tenant gets the same 401 as a wrong signature. */
const webhookName = z.string().max(4096);
const webhookParams = z.object({ channel: webhookName, tenantId: webhookName });

export const verifyWebhook = defineRoute({
  id: 'verifyWebhook',
  method: 'get',
  path: '/webhook/{channel}/{tenantId}',
  tag: 'webhooks',
  summary: 'Handshake of a channel provider',
  auth: 'signature',
  scopes: [],
  params: webhookParams,
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
  params: webhookParams,
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
  const buildPath = (spelling: string): string => receiveWebhook.path.replace('{channel}', spelling).replace('{tenantId}', tenantId);
  return [buildPath(toAppName(channel)), buildPath(channel)];
}
