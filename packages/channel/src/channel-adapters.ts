import { isSimulated, parseChannelSettings, type MessagingChannel, type ChannelSettings } from '@concierge/contract';
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
  return withSimulated(channelAdapters[channel].openSender(settings, options));
}

/**
 * Takes what goes to a simulated contact as sent, and sends nothing. Around every sender, so that no path leads past
 * it: replies, messages of tools and schedules, words of staff, notices.
 */
function withSimulated(sender: ChannelSender): ChannelSender {
  const { sendTemplate, acknowledge } = sender;
  const taken = { kind: 'sent', providerMessageId: undefined } as const;
  return {
    send: async (message, signal) => (isSimulated(message.to) ? taken : sender.send(message, signal)),
    showTyping: async (request, signal) => !isSimulated(request.to) && (await sender.showTyping(request, signal)),
    typingRepeatMs: sender.typingRepeatMs,
    checkCredentials: async (signal) => sender.checkCredentials(signal),
    fetchFile: async (file, signal) => sender.fetchFile(file, signal),
    ...(sendTemplate !== undefined && {
      sendTemplate: async (template, signal) => (isSimulated(template.to) ? taken : sendTemplate.call(sender, template, signal)),
    }),
    ...(acknowledge !== undefined && { acknowledge: async (callbackId, signal) => acknowledge.call(sender, callbackId, signal) }),
  };
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
