import type { OpenBinding } from '@concierge/channel';
import type { MessagingChannel } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/**
 * A channel with what connects it. undefined when it is not connected, or disabled.
 * @throws AppError internal_error when it cannot be read
 */
export async function openBinding<Channel extends MessagingChannel>(
  channels: TenantScope['channels'],
  channel: Channel,
): Promise<OpenBinding<Channel> | undefined> {
  const settings = await channels.open(channel);
  return settings && { channel, settings };
}
