import { AppError, Channel, isMessagingChannel, type MessagingChannel, type ChannelSettings } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** A tenant's channel binding whose deliveries are verified. */
export interface BoundChannel {
  readonly scope: TenantScope;
  readonly channel: MessagingChannel;
  /** The binding's own id at the provider: messages of two accounts are not the same, whatever their ids. */
  readonly account: string;
}

/** Accepts any of a channel's names; undefined for what is no channel. */
export function toMessagingChannel(name: string): MessagingChannel | undefined {
  const channel = Channel.safeParse(name).data;
  return channel !== undefined && isMessagingChannel(channel) ? channel : undefined;
}

/**
 * undefined when the channel is not connected, is disabled, or cannot be read: all of them are the same from outside.
 */
export async function openSettings<Of extends MessagingChannel>(
  scope: TenantScope | undefined,
  channel: Of,
): Promise<ChannelSettings[Of] | undefined> {
  try {
    return await scope?.channels.open(channel);
  } catch (error) {
    // Its owner sees that it is broken; the file's damage has been logged when it was read.
    if (error instanceof AppError && error.code === 'internal_error') return undefined;
    throw error;
  }
}
