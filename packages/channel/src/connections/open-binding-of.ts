import { parseChannelSettings, type AppChannel } from '@concierge/contract';
import type { OpenBinding } from '../outbound/open-sender.ts';

/** What somebody says connects this channel. @throws AppError invalid_request */
export function openBindingOf(channel: AppChannel, settings: unknown): OpenBinding {
  switch (channel) {
    case 'channel_a':
      return { channel, settings: parseChannelSettings(channel, settings) };
    case 'channel_b':
      return { channel, settings: parseChannelSettings(channel, settings) };
    case 'channel_c':
      return { channel, settings: parseChannelSettings(channel, settings) };
    case 'channel_d':
      return { channel, settings: parseChannelSettings(channel, settings) };
  }
}
