import { z } from 'zod';
import type { ChannelName, channelSynonyms } from './channel.ts';

/** The channels that can be connected: `web` is always there and needs no credentials. */
export const appChannels = ['channel_a', 'channel_b', 'channel_c', 'channel_d'] as const;
export type AppChannel = (typeof appChannels)[number];
export const AppChannel = z.enum(appChannels);

export function isAppChannel(channel: ChannelName): channel is AppChannel {
  return channel !== 'web';
}

export type AppName = keyof typeof channelSynonyms;

const appNames = { channel_a: 'whatsapp', channel_b: 'messenger', channel_c: 'telegram', channel_d: 'slack' } as const satisfies Record<
  AppChannel,
  AppName
>;

/** The name people know it by: `telegram` for `channel_c`. */
export function appNameOf(channel: AppChannel): AppName {
  return appNames[channel];
}

const identifier = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/u, 'must be 1 to 128 letters, digits, _, . or -');
/** Never empty: a signature with an empty secret is one that anybody can make. */
const secret = z.string().regex(/^[\u0021-\u007E]{1,4096}$/u, 'must be 1 to 4096 visible ASCII characters without spaces');
const metaSecrets = { accessToken: secret, verifyToken: secret, appSecret: secret };

/** What connects each chat app (contract §4): PUT /api/channels/{channel}. */
export const channelSettings = {
  channel_a: z.strictObject({ phoneNumberId: identifier, ...metaSecrets }).meta({ id: 'WhatsAppSettings' }),
  channel_b: z.strictObject({ pageId: identifier, instagramId: identifier.optional(), ...metaSecrets }).meta({ id: 'MessengerSettings' }),
  channel_c: z
    .strictObject({
      botToken: secret,
      /** Without it nobody in a group can be seen to mention the bot. */
      botUsername: identifier.optional(),
      // Telegram itself refuses any other.
      secretToken: z.string().regex(/^[A-Za-z0-9_-]{1,256}$/u, 'must be 1 to 256 letters, digits, _ or -'),
    })
    .meta({ id: 'TelegramSettings' }),
  channel_d: z
    .strictObject({ botToken: secret, signingSecret: secret, teamId: identifier, botUserId: identifier, appId: identifier.optional() })
    .meta({ id: 'SlackSettings' }),
} as const satisfies Record<AppChannel, z.ZodObject>;

export type ChannelSettings = { readonly [Channel in AppChannel]: z.infer<(typeof channelSettings)[Channel]> };

/** Fields that are sealed on disk and never shown again; the others are identifiers. */
export const channelSecrets = {
  channel_a: ['accessToken', 'verifyToken', 'appSecret'],
  channel_b: ['accessToken', 'verifyToken', 'appSecret'],
  channel_c: ['botToken', 'secretToken'],
  channel_d: ['botToken', 'signingSecret'],
} as const satisfies { readonly [Channel in AppChannel]: readonly (keyof ChannelSettings[Channel])[] };

/** tenants/<id>/channels/<channel>.json. Written when it is connected, disabled or enabled, and at no other time. */
export const ChannelBinding = z.strictObject({
  version: z.literal(1),
  channel: AppChannel,
  enabled: z.boolean(),
  /** Why it is not enabled, in words for the owner; null while it is. */
  disabledReason: z.string().max(500).nullable(),
  identifiers: z.record(z.string(), z.string()),
  /** Sealed with tenant and field as associated data (see `TenantSecrets`). */
  sealed: z.record(z.string(), z.string()),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type ChannelBinding = z.infer<typeof ChannelBinding>;

export const ChannelError = z.strictObject({ at: z.iso.datetime(), code: z.string().max(100), message: z.string().max(500) });
export type ChannelError = z.infer<typeof ChannelError>;

/** What may be shown of a binding: which secrets it has, never one of them. */
export const ChannelView = z
  .object({
    channel: AppChannel,
    app: z.enum(['whatsapp', 'messenger', 'telegram', 'slack']),
    /** `broken`: its file cannot be read, or its credentials cannot be opened here; connect it again. */
    state: z.enum(['enabled', 'disabled', 'broken']),
    /** Why it is not enabled. */
    reason: z.string().nullable(),
    identifiers: z.record(z.string(), z.string()),
    /** `unreadable`: sealed for another tenant id, or with another SECRETS_KEY. */
    secrets: z.record(z.string(), z.enum(['set', 'unreadable'])),
    createdAt: z.iso.datetime().nullable(),
    updatedAt: z.iso.datetime().nullable(),
    lastInboundAt: z.iso.datetime().nullable(),
    lastOutboundAt: z.iso.datetime().nullable(),
    lastError: ChannelError.nullable(),
  })
  .meta({ id: 'ChannelBinding' });
export type ChannelView = z.infer<typeof ChannelView>;
