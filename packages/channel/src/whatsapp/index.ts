import type { WhatsAppSettings } from '@concierge/contract';
import type { ChannelAdapter } from '../channel-adapter.ts';
import { isSignedByMeta, metaHandshake } from '../meta/meta.ts';
import { parseWhatsApp } from './parse.ts';
import { mediaSources, WhatsAppSender } from './send.ts';
import { whatsAppRules } from './sending-rules.ts';

/** WhatsApp Cloud API. */
export const whatsapp: ChannelAdapter<WhatsAppSettings> = {
  handshake: metaHandshake,
  verify: isSignedByMeta,
  parse: parseWhatsApp,
  selfId: ({ phoneNumberId }) => phoneNumberId,
  openSender: (settings, options) => new WhatsAppSender(settings, options),
  allRules: [whatsAppRules],
  rulesFor: () => whatsAppRules,
  mediaSources,
};
