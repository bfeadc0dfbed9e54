import {
  openSender,
  type ChannelSender,
  type ProviderUrls,
  channelAdapters,
  type OpenBinding,
  type SendingRules,
} from '@concierge/channel';
import {
  isMessagingChannel,
  type AcceptedTurn,
  type ChannelMessage,
  toAppName,
  type ChannelView,
  type DeliveryProblem,
  type MessagingChannel,
} from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { TenantScope, Delivery } from '@concierge/tenant';

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
  async findSender(
    scope: TenantScope,
    { channel, channelMessage }: Pick<AcceptedTurn, 'channel' | 'channelMessage'>,
  ): Promise<ChannelSender | undefined> {
    if (channelMessage === undefined || !isMessagingChannel(channel)) return undefined;
    const { urls, log } = this.#options;
    const binding = await openBinding(scope.channels, channel).catch((error: unknown) => {
      log.warn({ err: error, tenantId: scope.tenantId, channel }, 'the binding of a channel cannot be opened');
      return undefined;
    });
    return binding && openSender(binding, { urls });
  }
}

/** The origin of the turn's message, in the form that providers take. */
export function toDestination({ address: { to, thread } }: ChannelMessage): { readonly to: string; readonly thread?: string } {
  return { to, ...(thread !== null && { thread }) };
}

/** A connected channel, for one message. */
export interface Connection {
  readonly scope: TenantScope;
  readonly binding: OpenBinding;
  readonly view: ChannelView;
  readonly rules: SendingRules;
}

/** undefined while nothing can be sent for this tenant on this channel. */
export async function findConnection(scope: TenantScope, { message }: Delivery): Promise<Connection | undefined> {
  if ((await scope.settings()).suspended === true) return undefined;
  const view = await scope.channels.find(message.channel);
  if (view?.state !== 'enabled' && view?.state !== 'receive_only') return undefined;
  const binding = await openBinding(scope.channels, message.channel);
  return binding && { scope, binding, view, rules: await findSendingRules(scope, view, message) };
}

/**
 * Stops sending until a staff member has fixed the credentials at the provider or connects the channel anew; does
 * nothing if the channel has just been connected anew.
 */
export async function stopSending(
  { scope, view }: Connection,
  problem: DeliveryProblem,
  { nowMs, log }: { readonly nowMs: number; readonly log: Log },
): Promise<void> {
  const { channel } = view;
  const { tenantId } = scope;
  log.error({ tenantId, channel, code: problem.code }, 'a channel refuses the credentials of a binding: it receives, and sends nothing');
  const reason = `${toAppName(channel)} refuses what is sent with its credentials (${problem.code}): ${problem.message}`;
  await scope.channels.stopSending(view, { reason, nowMs });
}

/** The conversation names which of the binding's accounts was written to, where that decides. */
async function findSendingRules(
  scope: TenantScope,
  { channel, identifiers }: ChannelView,
  { sessionId, to }: Delivery['message'],
): Promise<SendingRules> {
  const adapter = channelAdapters[channel];
  const isAsked = adapter.hasRulesPerAccount?.(identifiers) === true;
  const account = isAsked ? (await scope.sessions.load(sessionId))?.channelAddress?.account : undefined;
  return adapter.rulesFor({ to, identifiers, account });
}

/**
 * A channel with what connects it. undefined when it is not connected, or disabled.
 * @throws AppError internal_error when it cannot be read
 */
async function openBinding<Channel extends MessagingChannel>(
  channels: TenantScope['channels'],
  channel: Channel,
): Promise<OpenBinding<Channel> | undefined> {
  const settings = await channels.open(channel);
  return settings && { channel, settings };
}
