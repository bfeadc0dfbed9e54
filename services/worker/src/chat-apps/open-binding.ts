import type { OpenBinding } from '@concierge/channel';
import type { AppChannel, ChannelSettings } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** A channel with what connects it. undefined when it is not connected, or disabled. @throws AppError internal_error when it cannot be read */
export async function openBinding(channels: TenantScope['channels'], channel: AppChannel): Promise<OpenBinding | undefined> {
  switch (channel) {
    case 'channel_a':
      return toBinding(await channels.open(channel), (settings) => ({ channel, settings }));
    case 'channel_b':
      return toBinding(await channels.open(channel), (settings) => ({ channel, settings }));
    case 'channel_c':
      return toBinding(await channels.open(channel), (settings) => ({ channel, settings }));
    case 'channel_d':
      return toBinding(await channels.open(channel), (settings) => ({ channel, settings }));
  }
}

function toBinding<Settings extends ChannelSettings[AppChannel]>(
  settings: Settings | undefined,
  make: (settings: Settings) => OpenBinding,
): OpenBinding | undefined {
  return settings && make(settings);
}
