import { z } from 'zod';
import { SaidParams } from '../values/said.ts';
import { AppError, invalidFields } from '../errors/app-error.ts';
import { toAppName, channelDefinitions, type ChannelSettings } from '../channel-definitions.ts';
import { MessagingChannel, AppName } from './channel.ts';

/**
 * @throws AppError invalid_request, naming each field that is missing, wrong or not one of this channel's; no value is
 * in it
 */
export function parseChannelSettings<Channel extends MessagingChannel>(channel: Channel, settings: unknown): ChannelSettings[Channel] {
  const parsed = channelDefinitions[channel].settings.safeParse(settings);
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the schema of this channel has just read it; TypeScript loses the pairing
  if (parsed.success) return parsed.data as ChannelSettings[Channel];
  throw new AppError('invalid_request', `These are not the settings of ${toAppName(channel)}.`, { errors: invalidFields(parsed.error) });
}

/** tenants/<id>/channels/<channel>.json. Written when it is connected, disabled or enabled, and at no other time. */
export const ChannelBinding = z.strictObject({
  version: z.literal(1),
  channel: MessagingChannel,
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

/**
 * tenants/<id>/channels/<channel>.sending.json: the provider refuses to send for this version of the binding. What
 * people write still comes in.
 */
export const SendingStop = z.strictObject({
  version: z.literal(1),
  since: z.iso.datetime(),
  reason: z.string().max(1000),
  /** The version of the binding that was refused: a new connection has another one. */
  bindingUpdatedAt: z.iso.datetime(),
  /** One message is tried then. */
  tryAgainAt: z.iso.datetime(),
});
export type SendingStop = z.infer<typeof SendingStop>;

/** What may be shown of a binding: which secrets it has, never one of them. */
export const ChannelView = z
  .object({
    channel: MessagingChannel,
    app: AppName,
    /**
     * `receive_only`: the provider refuses what is sent with these credentials; messages come in, and are answered once
     * it takes them again. `broken`: its file cannot be read, or its credentials cannot be opened here; connect it
     * again.
     */
    state: z.enum(['enabled', 'receive_only', 'disabled', 'broken']),
    /** Why it is not enabled; or why credentials that were put there as a file are left alone. */
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

/** GET /api/channels/{channel}/setup: what its wizard asks for and shows, before and after it is connected. */
export const ChannelSetup = z
  .object({
    channel: MessagingChannel,
    app: AppName,
    label: z.string(),
    connected: z.boolean(),
    webhookUrl: z.string().meta({ description: 'Where the provider is to bring messages; without PUBLIC_URL the path alone.' }),
    hasPublicUrl: z.boolean(),
    verifyToken: z.object({ field: z.string(), value: z.string() }).nullable().meta({
      description:
        'A token to use for this field, the same at every look. null: the channel has no such field, or is connected with another value.',
    }),
    fields: z
      .array(z.object({ name: z.string(), isSecret: z.boolean(), isRequired: z.boolean() }))
      .meta({ description: 'What connects it.' }),
  })
  .meta({ id: 'ChannelSetup' });
export type ChannelSetup = z.infer<typeof ChannelSetup>;

/** Everything that can be found of a channel; the first word is the name of the check. */
export const channelCheckCodes = [
  'binding_enabled',
  'binding_receive_only',
  'binding_disabled',
  'binding_broken',
  'credentials_valid',
  'credentials_refused',
  'credentials_mismatch',
  'credentials_unreachable',
  'webhook_brings',
  'webhook_not_taken',
  'webhook_not_said',
  'webhook_nowhere',
  'webhook_elsewhere',
  'webhook_kinds_missing',
  'webhook_failing',
] as const;
export type ChannelCheckCode = (typeof channelCheckCodes)[number];

/**
 * One thing that was looked at just now. `binding`: what is stored here. `credentials`, `webhook`: what the provider
 * reports about them.
 */
export const ChannelCheck = z
  .object({
    name: z.enum(['binding', 'credentials', 'webhook']),
    ok: z.boolean(),
    message: z.string(),
    code: z
      .enum(channelCheckCodes)
      .or(z.string())
      .optional()
      .meta({ description: 'Which sentence the message is; there may be more of them later.' }),
    params: SaidParams.optional(),
  })
  .meta({ id: 'ChannelCheck' });
export type ChannelCheck = z.infer<typeof ChannelCheck>;

/** POST /api/channels/{channel}/test: a provider that refuses or does not answer is an answer, too. */
export const ChannelTest = z.object({ ok: z.boolean(), checks: z.array(ChannelCheck) }).meta({ id: 'ChannelTest' });
export type ChannelTest = z.infer<typeof ChannelTest>;

/** A binding as the API and the command line show it. */
/** Whether free text may be sent, as the channel's rule for replies has it. */
export const ReplyWindowView = z.object({ state: z.enum(['none', 'open', 'closed']), until: z.iso.datetime().nullable() });
export type ReplyWindowView = z.infer<typeof ReplyWindowView>;

export const ConnectedChannel = ChannelView.extend({
  webhookUrl: z.string().meta({ description: 'Where the provider is to bring messages; without PUBLIC_URL the path alone.' }),
  window: ReplyWindowView.meta({
    description:
      'Whether the contact who wrote last may be sent free text. none: the channel has no such rule. closed: `until` is when; null: no contact ever wrote.',
  }),
  checks: z.array(ChannelCheck).optional().meta({ description: 'What the provider was asked in this very call.' }),
}).meta({ id: 'ConnectedChannel' });
export type ConnectedChannel = z.infer<typeof ConnectedChannel>;
