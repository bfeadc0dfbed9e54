import { z } from 'zod';

const identifier = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/u, 'must be 1 to 128 letters, digits, _, . or -');
/** Never empty: a signature with an empty secret can be forged. */
const secret = z.string().regex(/^[\u0021-\u007E]{1,4096}$/u, 'must be 1 to 4096 visible ASCII characters without spaces');
/** Goes into no header and no address, so that spaces inside do no harm. */
const signingSecret = z
  .string()
  .regex(/^(?! )[\u0020-\u007E]{1,4096}(?<! )$/u, 'must be 1 to 4096 visible ASCII characters, with spaces at most inside');

const metaSecrets = { accessToken: secret, verifyToken: signingSecret, appSecret: signingSecret };
const metaGraph = { key: 'metaGraph', variable: 'META_GRAPH_URL', url: 'https://graph.facebook.com/v23.0' } as const;

/** What is declared of a channel: what the API, the files, the console and the prompts of agents contain about it. */
export interface ChannelDefinition {
  /** The name people know it by: a synonym in the API, and the first part of its webhook's path. */
  readonly name: string;
  readonly label: string;
  /** What connects it (contract §4): PUT /api/channels/{channel}. */
  readonly settings: z.ZodObject;
  /** Fields that are sealed on disk and never shown again; the others are identifiers. */
  readonly secrets: readonly string[];
  readonly recipient: RecipientForm;
  /** Before a command to the agent: Slack keeps what begins with a slash to itself. */
  readonly commandPrefix: '/' | '!';
  /** The provider reports later that a message has arrived; without that, one that it took counts as arrived. */
  readonly hasReceipts: boolean;
  /** Approved messages may be sent while the reply window is closed. */
  readonly hasTemplates: boolean;
  /** The provider's API. `variable`: the operator's setting with its address; no tenant setting contains it. */
  readonly api: { readonly key: string; readonly variable: string; readonly url: string };
}

/** What the id of a contact looks like. */
export interface RecipientForm {
  readonly pattern: RegExp;
  /** Takes out what may stand between the characters of an id. */
  readonly spell?: (to: string) => string;
  /** In words, for errors. */
  readonly words: string;
  /** In a few words, for tools. */
  readonly brief: string;
}

/**
 * The channels that can be connected, under their names in the API, which are hashed into session keys and stored. How
 * each of them behaves is the matter of its adapter in packages/channel.
 */
export const channelDefinitions = {
  channel_a: {
    name: 'whatsapp',
    label: 'WhatsApp',
    settings: z.strictObject({ phoneNumberId: identifier, ...metaSecrets }).meta({ id: 'WhatsAppSettings' }),
    secrets: ['accessToken', 'verifyToken', 'appSecret'],
    recipient: {
      pattern: /^(?:[1-9]\d{5,19}|[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128})$/u,
      spell: (to) => (/^\+?[\d\s().-]+$/u.test(to) ? to.replaceAll(/\D/gu, '') : to),
      words: 'a phone number with its country code, such as 4915112345678, or a business-scoped id such as US.13491208655302741918',
      brief: 'a phone number with country code',
    },
    commandPrefix: '/',
    hasReceipts: true,
    hasTemplates: true,
    api: metaGraph,
  },
  channel_b: {
    name: 'messenger',
    label: 'Messenger',
    settings: z.strictObject({ pageId: identifier, instagramId: identifier.optional(), ...metaSecrets }).meta({ id: 'MessengerSettings' }),
    secrets: ['accessToken', 'verifyToken', 'appSecret'],
    recipient: { pattern: /^\d{1,32}$/u, words: 'a page-scoped id, digits only', brief: 'a page-scoped id' },
    commandPrefix: '/',
    hasReceipts: true,
    hasTemplates: false,
    api: metaGraph,
  },
  channel_c: {
    name: 'telegram',
    label: 'Telegram',
    settings: z
      .strictObject({
        botToken: secret,
        /** Without it a mention of the bot in a group is not detected. */
        botUsername: identifier.optional(),
        // Telegram itself refuses any other.
        secretToken: z.string().regex(/^[A-Za-z0-9_-]{1,256}$/u, 'must be 1 to 256 letters, digits, _ or -'),
      })
      .meta({ id: 'TelegramSettings' }),
    secrets: ['botToken', 'secretToken'],
    recipient: {
      pattern: /^-?\d{1,16}$/u,
      words: 'a numeric chat id, such as 123456789 or -1001234567890',
      brief: 'a numeric chat id',
    },
    commandPrefix: '/',
    hasReceipts: false,
    hasTemplates: false,
    api: { key: 'telegram', variable: 'TELEGRAM_API_URL', url: 'https://api.telegram.org' },
  },
  channel_d: {
    name: 'slack',
    label: 'Slack',
    settings: z
      .strictObject({ botToken: secret, signingSecret, teamId: identifier, botUserId: identifier, appId: identifier.optional() })
      .meta({ id: 'SlackSettings' }),
    secrets: ['botToken', 'signingSecret'],
    recipient: {
      pattern: /^[A-Z][A-Z0-9]{1,30}$/u,
      words: 'the id of a user or a conversation, such as U0123ABCD or C0123ABCD',
      brief: 'a user or conversation id',
    },
    commandPrefix: '!',
    hasReceipts: false,
    hasTemplates: false,
    api: { key: 'slack', variable: 'SLACK_API_URL', url: 'https://slack.com/api' },
  },
  channel_e: {
    name: 'twilio',
    label: 'Twilio',
    settings: z
      .strictObject({
        accountSid: z.string().regex(/^AC[0-9a-f]{32}$/u, 'must be AC and 32 hexadecimal digits'),
        authToken: secret,
        from: z
          .string()
          .regex(
            /^(?:(?:whatsapp:)?\+[1-9]\d{6,14}|\d{3,8}|[A-Za-z0-9 ]{1,11})$/u,
            'must be a number such as +4915112345678 or whatsapp:+4915112345678, a short code or a name',
          )
          .optional(),
        messagingServiceSid: z
          .string()
          .regex(/^MG[0-9a-f]{32}$/u, 'must be MG and 32 hexadecimal digits')
          .optional(),
      })
      .refine(({ from, messagingServiceSid }) => (from ?? messagingServiceSid) !== undefined, {
        path: ['from'],
        error: 'must be there, or messagingServiceSid',
      })
      .meta({ id: 'TwilioSettings' }),
    secrets: ['authToken'],
    recipient: {
      pattern: /^(?:whatsapp:)?\+[1-9]\d{6,14}$/u,
      spell: (to) => to.replaceAll(/[\s().-]/gu, ''),
      words: 'a phone number with + and its country code, such as +4915112345678, and whatsapp: before it for WhatsApp',
      brief: 'a phone number with +, or whatsapp: and such a number',
    },
    commandPrefix: '/',
    hasReceipts: true,
    hasTemplates: false,
    api: { key: 'twilio', variable: 'TWILIO_API_URL', url: 'https://api.twilio.com' },
  },
} as const satisfies Record<string, ChannelDefinition>;

type Definitions = typeof channelDefinitions;
export type MessagingChannel = keyof Definitions;
export type ChannelSettings = { readonly [Channel in MessagingChannel]: z.infer<Definitions[Channel]['settings']> };
export type WhatsAppSettings = ChannelSettings['channel_a'];
export type MessengerSettings = ChannelSettings['channel_b'];
export type TelegramSettings = ChannelSettings['channel_c'];
export type SlackSettings = ChannelSettings['channel_d'];
export type TwilioSettings = ChannelSettings['channel_e'];
type AppName = Definitions[MessagingChannel]['name'];
type ByName = { readonly [Channel in MessagingChannel as Definitions[Channel]['name']]: Channel };

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table, which Object.keys forgets
export const messagingChannels = Object.keys(channelDefinitions) as readonly MessagingChannel[];

/** The name people know it by: `telegram` for `channel_c`. */
export function toAppName(channel: MessagingChannel): AppName {
  return channelDefinitions[channel].name;
}

export const appNames: readonly AppName[] = messagingChannels.map(toAppName);

/** The channels behind the names people know (contract §3): synonyms for the same session. */
// eslint-disable-next-line typescript/no-unsafe-type-assertion -- each name with its channel, as the table pairs them
export const channelSynonyms = Object.fromEntries(messagingChannels.map((channel) => [toAppName(channel), channel])) as ByName;

/** The channels that take approved messages while their reply window is closed. */
export const appNamesWithTemplates: readonly AppName[] = messagingChannels
  .filter((channel) => channelDefinitions[channel].hasTemplates)
  .map(toAppName);

/** `whatsapp, messenger or telegram`, for messages. */
export function appNamesJoined(conjunction: 'and' | 'or'): string {
  return `${appNames.slice(0, -1).join(', ')} ${conjunction} ${String(appNames.at(-1))}`;
}

/** The recipient as the channel spells it; undefined when it can be none. */
export function readRecipient(channel: MessagingChannel, to: string): string | undefined {
  const { pattern, spell }: RecipientForm = channelDefinitions[channel].recipient;
  const text = to.trim();
  const plain = spell === undefined ? text : spell(text);
  return pattern.test(plain) ? plain : undefined;
}
