import { z } from 'zod';
import { messagingChannels, appNames, appNamesJoined, channelSynonyms } from '../channel-definitions.ts';

/** Canonical names, as the service interface has them; these are hashed into session keys and stored. */
export const channelNames = ['web', ...messagingChannels] as const;
export type ChannelName = (typeof channelNames)[number];

const synonyms: Readonly<Partial<Record<string, MessagingChannel>>> = channelSynonyms;

export const CanonicalChannel = z.enum(channelNames);

/** Accepts every spelling, yields the canonical name. */
export const Channel = z
  .enum([...channelNames, ...appNames])
  .transform((name): ChannelName => synonyms[name] ?? CanonicalChannel.parse(name))
  .meta({
    id: 'Channel',
    description: `Channel of origin; ${appNamesJoined('and')} are synonyms of ${String(messagingChannels[0])} to ${String(messagingChannels.at(-1))}.`,
  });

export const MessagingChannel = z.enum(messagingChannels);
export type MessagingChannel = z.infer<typeof MessagingChannel>;
export const AppName = z.enum(appNames);
export type AppName = z.infer<typeof AppName>;

export function isMessagingChannel(channel: ChannelName): channel is MessagingChannel {
  return channel !== 'web';
}
