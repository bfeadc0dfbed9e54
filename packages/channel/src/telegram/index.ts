import type { ChannelSettings } from '@concierge/contract';
import { isSameSecret } from '@concierge/runtime';
import type { ChannelAdapter, WebhookRequest } from '../channel-adapter.ts';
import { headerOf } from '../inbound/signature.ts';
import { parseTelegram } from './parse.ts';
import { mediaSources, TelegramSender } from './send.ts';
import { telegramSurface } from './surface.ts';
import { TelegramWebhooks } from './webhooks.ts';

/** Telegram's own spelling first; the other one is the service interface's. */
const headerNames = ['x-telegram-bot-api-secret-token', 'x-messenger-bot-api-secret-token'];

/** Telegram Bot API. */
export const telegram: ChannelAdapter<'channel_c'> = {
  verify: verifyTelegram,
  parse: parseTelegram,
  /** The digits before the colon stay when a token is made anew. */
  selfId: ({ botToken }) => botToken.split(':', 1)[0] ?? '',
  openSender: (settings, options) => new TelegramSender(settings, options),
  openWebhooks: (settings, options) => new TelegramWebhooks(settings, options),
  surfaces: [telegramSurface],
  surface: () => telegramSurface,
  mediaSources,
};

/** No signature: the token that Telegram was given when the webhook was registered. */
function verifyTelegram(request: WebhookRequest, settings: ChannelSettings['channel_c'] | undefined): boolean {
  const given = headerNames.map((name) => headerOf(request, name)).find((token) => token !== undefined);
  return isSameSecret(given, settings?.secretToken);
}
