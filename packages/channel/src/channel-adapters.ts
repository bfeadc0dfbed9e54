import type { AppChannel } from '@concierge/contract';
import type { ChannelAdapter } from './channel-adapter.ts';
import { handshakeMessenger } from './messenger/handshake.ts';
import { parseMessenger } from './messenger/parse.ts';
import { verifyMessenger } from './messenger/verify.ts';
import { handshakeSlack } from './slack/handshake.ts';
import { parseSlack } from './slack/parse.ts';
import { verifySlack } from './slack/verify.ts';
import { handshakeTelegram } from './telegram/handshake.ts';
import { parseTelegram } from './telegram/parse.ts';
import { verifyTelegram } from './telegram/verify.ts';
import { handshakeWhatsApp } from './whatsapp/handshake.ts';
import { parseWhatsApp } from './whatsapp/parse.ts';
import { verifyWhatsApp } from './whatsapp/verify.ts';

type ChannelAdapters = { readonly [Channel in AppChannel]: ChannelAdapter<Channel> };

/** The adapter of each app. They have no state. */
export const channelAdapters: ChannelAdapters = {
  channel_a: { channel: 'channel_a', inbound: { handshake: handshakeWhatsApp, verify: verifyWhatsApp, parse: parseWhatsApp } },
  channel_b: { channel: 'channel_b', inbound: { handshake: handshakeMessenger, verify: verifyMessenger, parse: parseMessenger } },
  channel_c: { channel: 'channel_c', inbound: { handshake: handshakeTelegram, verify: verifyTelegram, parse: parseTelegram } },
  channel_d: { channel: 'channel_d', inbound: { handshake: handshakeSlack, verify: verifySlack, parse: parseSlack } },
};
