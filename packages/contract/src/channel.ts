import { z } from 'zod';
import { appChannels, appNames, appNamesJoined, channelSynonyms } from './channel-definitions.ts';

/** Canonical names, as the service interface has them; these are hashed into session keys and stored. */
export const channelNames = ['web', ...appChannels] as const;
export type ChannelName = (typeof channelNames)[number];

const synonyms: Readonly<Partial<Record<string, AppChannel>>> = channelSynonyms;

export const CanonicalChannel = z.enum(channelNames);

/** Accepts every spelling, yields the canonical name. */
export const Channel = z
  .enum([...channelNames, ...appNames])
  .transform((name): ChannelName => synonyms[name] ?? CanonicalChannel.parse(name))
  .meta({
    id: 'Channel',
    description: `Origin surface; ${appNamesJoined('and')} are synonyms of ${String(appChannels[0])} to ${String(appChannels.at(-1))}.`,
  });

export const AppChannel = z.enum(appChannels);
export type AppChannel = z.infer<typeof AppChannel>;
export const AppName = z.enum(appNames);
export type AppName = z.infer<typeof AppName>;

export function isAppChannel(channel: ChannelName): channel is AppChannel {
  return channel !== 'web';
}
