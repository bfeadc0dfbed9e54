import { openSender, type ChannelSender, type ProviderUrls } from '@concierge/channel';
import { isAppChannel, type AcceptedTurn, type ChatAppMessage } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { openBinding } from './open-binding.ts';

export interface ChatAppSendersOptions {
  readonly urls: ProviderUrls;
  readonly log: Log;
}

/** The way back to the chat app that a turn came from. */
export class ChatAppSenders {
  readonly #options: ChatAppSendersOptions;

  constructor(options: ChatAppSendersOptions) {
    this.#options = options;
  }

  /** undefined when the turn came from none, or the app is not connected (any more), or its binding cannot be read. */
  async of(scope: TenantScope, { channel, chatApp }: Pick<AcceptedTurn, 'channel' | 'chatApp'>): Promise<ChannelSender | undefined> {
    if (chatApp === undefined || !isAppChannel(channel)) return undefined;
    const { urls, log } = this.#options;
    const binding = await openBinding(scope.channels, channel).catch((error: unknown) => {
      log.warn({ err: error, accountId: scope.accountId, channel }, 'the binding of a chat app cannot be opened');
      return undefined;
    });
    return binding && openSender(binding, { urls });
  }
}

/** Where the turn's words came from, as providers are asked. */
export function destinationOf({ address: { to, thread } }: ChatAppMessage): { readonly to: string; readonly thread?: string } {
  return { to, ...(thread !== null && { thread }) };
}
