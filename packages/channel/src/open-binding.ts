import { parseChannelSettings, type MessagingChannel, type ChannelSettings } from '@concierge/contract';
import type { ChannelWebhooks, WebhooksOptions } from './channel-adapter.ts';
import { channelAdapters } from './channel-adapters.ts';
import type { ChannelSender } from './outbound/channel-sender.ts';
import type { SenderOptions } from './outbound/sender-options.ts';

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

export function selfIdOf<Channel extends MessagingChannel>({ channel, settings }: OpenBinding<Channel>): string {
  return channelAdapters[channel].selfId(settings);
}
