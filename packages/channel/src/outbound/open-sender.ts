import type { AppChannel, ChannelSettings } from '@concierge/contract';
import { MessengerSender } from '../messenger/send.ts';
import { SlackSender } from '../slack/send.ts';
import { TelegramSender } from '../telegram/send.ts';
import { WhatsAppSender } from '../whatsapp/send.ts';
import type { ChannelSender } from './channel-sender.ts';
import type { SenderOptions } from './sender-options.ts';

/** A channel and what connects it. */
export type OpenBinding = {
  [Channel in AppChannel]: { readonly channel: Channel; readonly settings: ChannelSettings[Channel] };
}[AppChannel];

/** The way out for a binding. It holds no connection of its own, and nothing to close. */
export function openSender(binding: OpenBinding, options: SenderOptions): ChannelSender {
  switch (binding.channel) {
    case 'channel_a':
      return new WhatsAppSender(binding.settings, options);
    case 'channel_b':
      return new MessengerSender(binding.settings, options);
    case 'channel_c':
      return new TelegramSender(binding.settings, options);
    case 'channel_d':
      return new SlackSender(binding.settings, options);
  }
}
