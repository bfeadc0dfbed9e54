import { parseChannelSettings, type MessagingChannel, type ChannelSettings } from '@concierge/contract';
import type { ChannelAdapter, ChannelWebhooks, WebhooksOptions } from './channel-adapter.ts';
import { messenger } from './messenger/index.ts';
import { slack } from './slack/index.ts';
import { telegram } from './telegram/index.ts';
import { twilio } from './twilio/index.ts';
import { whatsapp } from './whatsapp/index.ts';
import type { ChannelSender, SenderOptions } from './outbound/channel-sender.ts';

/** The adapter of each channel. They have no state. */
export const channelAdapters: { readonly [Channel in MessagingChannel]: ChannelAdapter<ChannelSettings[Channel]> } = {
  channel_a: whatsapp,
  channel_b: messenger,
  channel_c: telegram,
  channel_d: slack,
  channel_e: twilio,
};

/** A channel and its credentials. */
export type OpenBinding<Channel extends MessagingChannel = MessagingChannel> = {
  [Each in Channel]: { readonly channel: Each; readonly settings: ChannelSettings[Each] };
}[Channel];

/** Parses the credentials of a channel. @throws AppError invalid_request */
export function readBinding<Channel extends MessagingChannel>(channel: Channel, settings: unknown): OpenBinding<Channel> {
  return { channel, settings: parseChannelSettings(channel, settings) };
}

/** Opens the sender of a binding. It holds no connection, and nothing to close. */
export function openSender<Channel extends MessagingChannel>(
  { channel, settings }: OpenBinding<Channel>,
  options: SenderOptions,
): ChannelSender {
  return channelAdapters[channel].openSender(settings, options);
}

export function openWebhooks<Channel extends MessagingChannel>(
  { channel, settings }: OpenBinding<Channel>,
  options: WebhooksOptions,
): ChannelWebhooks | undefined {
  return channelAdapters[channel].openWebhooks?.(settings, options);
}

export function readSelfId<Channel extends MessagingChannel>({ channel, settings }: OpenBinding<Channel>): string {
  return channelAdapters[channel].selfId(settings);
}
