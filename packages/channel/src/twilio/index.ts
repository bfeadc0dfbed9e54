import type { ChannelAdapter, ChannelWebhooks } from '../channel-adapter.ts';
import { parseTwilio } from './parse.ts';
import { mediaSources, TwilioSender } from './send.ts';
import { isWhatsApp, smsSurface, whatsAppSurface } from './surface.ts';
import { verifyTwilio } from './verify.ts';

/** SMS, and WhatsApp, over Twilio's Programmable Messaging. */
export const twilio: ChannelAdapter<'channel_e'> = {
  verify: verifyTwilio,
  parse: parseTwilio,
  selfId: ({ accountSid }) => accountSid,
  openSender: (settings, options) => new TwilioSender(settings, options),
  openWebhooks: (_settings, { hasPublicUrl }) => webhooks(hasPublicUrl),
  surfaces: [smsSurface, whatsAppSurface],
  surface: ({ to, identifiers }) => (isWhatsApp(to ?? identifiers?.['from'] ?? '') ? whatsAppSurface : smsSurface),
  mediaSources,
};

/**
 * The address is set on Twilio's pages. All that can be found out here is whether what comes from there can be checked
 * at all.
 */
function webhooks(hasPublicUrl: boolean): ChannelWebhooks {
  const problem = {
    name: 'webhook',
    ok: false,
    message:
      'PUBLIC_URL is not set. Twilio signs the address that it calls, so without it nothing that comes can be checked, and all of it is refused.',
  } as const;
  const look = async () => Promise.resolve(hasPublicUrl ? undefined : problem);
  return { register: look, check: look, remove: async () => Promise.resolve() };
}
