import { channelAdapters, type OpenBinding, type SendingRules } from '@concierge/channel';
import { toAppName, type ChannelView, type DeliveryProblem } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { Delivery, TenantScope } from '@concierge/tenant';
import { openBinding } from '../channels/open-binding.ts';

/** A connected channel, for one message. */
export interface Connection {
  readonly scope: TenantScope;
  readonly binding: OpenBinding;
  readonly view: ChannelView;
  readonly surface: SendingRules;
}

/** undefined while nothing can be sent for this tenant on this channel. */
export async function connectionOf(scope: TenantScope, { message }: Delivery): Promise<Connection | undefined> {
  if ((await scope.settings()).suspended === true) return undefined;
  const view = await scope.channels.find(message.channel);
  if (view?.state !== 'enabled' && view?.state !== 'receive_only') return undefined;
  const binding = await openBinding(scope.channels, message.channel);
  return binding && { scope, binding, view, surface: await surfaceOfMessage(scope, view, message) };
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
async function surfaceOfMessage(
  scope: TenantScope,
  { channel, identifiers }: ChannelView,
  { sessionId, to }: Delivery['message'],
): Promise<SendingRules> {
  const adapter = channelAdapters[channel];
  const isAsked = adapter.hasRulesPerAccount?.(identifiers) === true;
  const account = isAsked ? (await scope.sessions.load(sessionId))?.chatApp?.account : undefined;
  return adapter.rulesFor({ to, identifiers, account });
}
