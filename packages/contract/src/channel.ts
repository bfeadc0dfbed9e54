import { z } from 'zod';

/** Canonical names, as the service interface has them; these are hashed into session keys and stored. */
export const channelNames = ['web', 'channel_a', 'channel_b', 'channel_c', 'channel_d'] as const;
export type ChannelName = (typeof channelNames)[number];

/** The chat apps behind the canonical names (contract §3): synonyms for the same session. */
export const channelSynonyms = {
  whatsapp: 'channel_a',
  messenger: 'channel_b',
  telegram: 'channel_c',
  slack: 'channel_d',
} as const satisfies Record<string, ChannelName>;

const spellings = [...channelNames, 'whatsapp', 'messenger', 'telegram', 'slack'] as const;

/** Accepts every spelling, yields the canonical name. */
export const Channel = z
  .enum(spellings)
  .transform((name): ChannelName => (name in channelSynonyms ? channelSynonyms[name as keyof typeof channelSynonyms] : (name as ChannelName))) // eslint-disable-line typescript/no-unsafe-type-assertion -- the enum above is the union of both
  .meta({ id: 'Channel', description: 'Origin surface; whatsapp, messenger, telegram and slack are synonyms of channel_a to channel_d.' });

export const CanonicalChannel = z.enum(channelNames);
