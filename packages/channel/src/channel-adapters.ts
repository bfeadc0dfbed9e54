import type { MessagingChannel } from '@concierge/contract';
import type { ChannelAdapter } from './channel-adapter.ts';
import { messenger } from './messenger/index.ts';
import { slack } from './slack/index.ts';
import { telegram } from './telegram/index.ts';
import { twilio } from './twilio/index.ts';
import { whatsapp } from './whatsapp/index.ts';

/** The adapter of each channel. They have no state. */
export const channelAdapters: { readonly [Channel in MessagingChannel]: ChannelAdapter<Channel> } = {
  channel_a: whatsapp,
  channel_b: messenger,
  channel_c: telegram,
  channel_d: slack,
  channel_e: twilio,
};
