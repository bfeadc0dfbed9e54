import type { ChannelConnections } from '@concierge/channel';
import type { Handlers } from '../http/call.ts';

type ChannelHandlers = Pick<Handlers, 'listChannels' | 'getChannel' | 'putChannel' | 'deleteChannel' | 'testChannel'>;

/** Channel bindings, by the same rules as the command line. */
export function channelHandlers({ connections }: { readonly connections: ChannelConnections }): ChannelHandlers {
  return {
    listChannels: async ({ caller: { scope } }) => ({ kind: 'answer', status: 200, json: await connections.list(scope) }),
    getChannel: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await connections.find(scope, params.channel),
    }),
    putChannel: async ({ caller: { scope }, params, body }) => {
      const { shown, isNew } = await connections.connect(scope, params.channel, body);
      return { kind: 'answer', status: isNew ? 201 : 200, json: shown };
    },
    deleteChannel: async ({ caller: { scope }, params }) => {
      await connections.disconnect(scope, params.channel);
      return { kind: 'answer', status: 204 };
    },
    testChannel: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await connections.test(scope, params.channel),
    }),
  };
}
