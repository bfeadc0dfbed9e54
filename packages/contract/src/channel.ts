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

const spellings = {
  web: 'web',
  channel_a: 'channel_a',
  channel_b: 'channel_b',
  channel_c: 'channel_c',
  channel_d: 'channel_d',
  ...channelSynonyms,
} as const;

/** Accepts every spelling, yields the canonical name. */
export const Channel = z
  .enum([...channelNames, 'whatsapp', 'messenger', 'telegram', 'slack'])
  .transform((name): ChannelName => spellings[name])
  .meta({ id: 'Channel', description: 'Origin surface; whatsapp, messenger, telegram and slack are synonyms of channel_a to channel_d.' });

export const CanonicalChannel = z.enum(channelNames);
