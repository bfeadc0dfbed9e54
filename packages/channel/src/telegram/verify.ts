import type { ChannelSettings } from '@concierge/contract';
import type { WebhookRequest } from '../channel-adapter.ts';
import { headerOf, isSecret } from '../inbound/signature.ts';

/** Telegram's own spelling first; the other one is the service interface's. */
const headerNames = ['x-telegram-bot-api-secret-token', 'x-messenger-bot-api-secret-token'];

/** No signature: the token that Telegram was given when the webhook was registered. */
export function verifyTelegram(request: WebhookRequest, settings: ChannelSettings['channel_c'] | undefined): boolean {
  const given = headerNames.map((name) => headerOf(request, name)).find((token) => token !== undefined);
  return isSecret(given, settings?.secretToken);
}
