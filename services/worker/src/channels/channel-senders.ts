import { openSender, type ChannelSender, type ProviderUrls } from '@concierge/channel';
import { isMessagingChannel, type AcceptedTurn, type ChannelMessage } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { openBinding } from './open-binding.ts';

export interface ChannelSendersOptions {
  readonly urls: ProviderUrls;
  readonly log: Log;
}

/** Finds the sender for the channel that a turn came from. */
export class ChannelSenders {
  readonly #options: ChannelSendersOptions;

  constructor(options: ChannelSendersOptions) {
    this.#options = options;
  }

  /**
   * undefined when the turn came from no channel, or the channel is not connected (any more), or its binding cannot be
   * read.
   */
  async of(scope: TenantScope, { channel, chatApp }: Pick<AcceptedTurn, 'channel' | 'chatApp'>): Promise<ChannelSender | undefined> {
    if (chatApp === undefined || !isMessagingChannel(channel)) return undefined;
    const { urls, log } = this.#options;
    const binding = await openBinding(scope.channels, channel).catch((error: unknown) => {
      log.warn({ err: error, tenantId: scope.tenantId, channel }, 'the binding of a channel cannot be opened');
      return undefined;
    });
    return binding && openSender(binding, { urls });
  }
}

/** The origin of the turn's message, in the form that providers take. */
export function destinationOf({ address: { to, thread } }: ChannelMessage): { readonly to: string; readonly thread?: string } {
  return { to, ...(thread !== null && { thread }) };
}
