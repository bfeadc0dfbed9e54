import { z } from 'zod';
import { ChannelTest, ConnectedChannel } from '../channels/channel-binding.ts';
import { channelDefinitions } from '../channel-definitions.ts';
import { Channel, isMessagingChannel } from '../channels/channel.ts';
import { limitedRecord } from '../values/limited-record.ts';
import { defineRoute } from './route.ts';

/** Every spelling; `web` is always there and is none of these. */
const params = z.object({ channel: Channel.refine(isMessagingChannel, 'is not a messaging channel') });

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
  params,
  answers: { 200: { description: 'The binding.', json: ConnectedChannel } },
  errors: ['not_found'],
});

export const putChannel = defineRoute({
  id: 'putChannel',
  method: 'put',
  path: '/api/channels/{channel}',
  tag: 'channels',
  summary: 'Connect a channel, or give it new credentials',
  description:
    'Every field of the channel, each time. The provider is asked first: credentials that it refuses, or that belong to another account, are 400 and nothing is stored. A provider that cannot be reached does not prevent it: `checks` reports that it was not asked. Secrets are sealed and never shown again.',
  auth: 'key',
  scopes: ['admin'],
  params,
  body: { kind: 'json', schema: body },
  answers: {
    200: { description: 'It has these credentials now, and is enabled.', json: ConnectedChannel },
    201: { description: 'It is connected.', json: ConnectedChannel },
  },
  errors: ['not_found'],
});

export const deleteChannel = defineRoute({
  id: 'deleteChannel',
  method: 'delete',
  path: '/api/channels/{channel}',
  tag: 'channels',
  summary: 'Disconnect a channel',
  auth: 'key',
  scopes: ['admin'],
  params,
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
  params,
  answers: { 200: { description: 'What was found, good or bad.', json: ChannelTest } },
  errors: ['not_found'],
});
