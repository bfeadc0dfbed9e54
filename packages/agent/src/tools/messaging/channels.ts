import { appChannels, appNameOf, appNames, channelDefinitions, type ChannelView } from '@concierge/contract';
import { z } from 'zod';
import { defineTool } from '../tool.ts';
import { howToConnect } from './how-to-connect.ts';

export const channels = defineTool({
  name: 'channels',
  description: `Lists the chat apps (${appNames.join(', ')}): which are connected, whether they work, what came and went last, and how to connect one. It shows no credentials and cannot change anything.`,
  schema: z.strictObject({}),
  sideEffect: 'none',
  run: async (_input, { messaging }) => {
    const known = new Map((await messaging.channels()).map((view) => [view.channel, view]));
    const parts = appChannels.map((channel) => {
      const view = known.get(channel);
      const app = appNameOf(channel);
      return view === undefined ? `${app}: not connected. ${howToConnect(app)}` : describe(view);
    });
    return ['web: always there; people use it through the chat page and the API.', ...parts].join('\n\n');
  },
});

function describe(view: ChannelView): string {
  const secrets = channelDefinitions[view.channel].secrets.map((name) => `${name} ${view.secrets[name] ?? 'missing'}`);
  const identifiers = Object.entries(view.identifiers).map(([name, value]) => `${name} ${value}`);
  return [
    `${view.app}: ${view.state}${view.reason === null ? '' : ` (${view.reason})`}`,
    `  settings: ${[...identifiers, ...secrets].join(', ')}`,
    `  connected ${view.createdAt ?? 'at an unknown time'}, last changed ${view.updatedAt ?? 'at an unknown time'}`,
    `  last message in: ${view.lastInboundAt ?? 'never'}; last message out: ${view.lastOutboundAt ?? 'never'}`,
    ...(view.lastError === null ? [] : [`  last error, ${view.lastError.at}: ${view.lastError.message} (${view.lastError.code})`]),
  ].join('\n');
}
