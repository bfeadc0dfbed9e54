import { z } from 'zod';
import { MessageText, UploadId } from '../turns/chat.ts';
import { limits } from '../limits.ts';
import { WidgetTeam } from './widget-team.ts';
import { FinishReason } from '../turns/turn-event.ts';

export const widgetKeyPrefix = 'ck_pub_';

/**
 * Names the tenant and shows nothing else: it stands in the source of public pages. One spelling, so that two texts are
 * one key only when equal.
 */
export const WidgetKey = z.string().regex(/^ck_pub_[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?_[0-9a-f]{32}$/u, 'is not a publishable key');

/** As browsers write the `Origin` of a page; plain http only of the owner's own machine. */
function isOrigin(text: string): boolean {
  if (/^http:\/\/localhost:\*$/u.test(text)) return true;
  const { protocol, hostname, origin } = URL.parse(text) ?? {};
  if (origin !== text || hostname === undefined) return false;
  return protocol === 'https:' || (protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(hostname));
}

const Origin = z
  .string()
  .max(300)
  .refine(isOrigin, 'must read https://shop.example, without a path, or http://localhost:8080, or http://localhost:*');

// eslint-disable-next-line no-control-regex -- looks for control characters and for those that turn text around
const plainText = /^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$/u;

/** Words that the script shows as they are: text, never HTML. */
function shownText(max: number): z.ZodString {
  return z
    .string()
    .max(max)
    .regex(plainText, 'must not contain control characters')
    .refine((text) => text.isWellFormed(), 'is not valid Unicode');
}

export const WidgetAppearance = z
  .strictObject({
    title: shownText(limits.widgetTitleMaxCharacters).min(1).default('Chat'),
    greeting: shownText(limits.widgetGreetingMaxCharacters).default('Hello! How can we help?'),
    colour: z
      .string()
      .regex(/^#[0-9a-f]{6}$/u, 'must read #1f6feb, in lower case')
      .default('#2457d6'),
    position: z.enum(['right', 'left']).default('right'),
  })
  .meta({ id: 'WidgetAppearance' });
export type WidgetAppearance = z.infer<typeof WidgetAppearance>;

/** The languages that the script speaks. */
export const widgetLanguages = ['en', 'de', 'es', 'fr', 'pt', 'ar'] as const;
export type WidgetLanguage = (typeof widgetLanguages)[number];

const WidgetTexts = z
  .strictObject({
    title: shownText(limits.widgetTitleMaxCharacters).min(1).optional().meta({ description: 'The head of the panel.' }),
    greeting: shownText(limits.widgetGreetingMaxCharacters).optional().meta({ description: 'Its first words.' }),
    placeholder: shownText(limits.widgetPlaceholderMaxCharacters)
      .min(1)
      .optional()
      .meta({ description: 'What stands in the empty field.' }),
  })
  .optional()
  .meta({ description: 'In this language, in place of those of `appearance` and of the script.' });

const offset = z.int().nonnegative().max(limits.widgetOffsetMaxPixels).default(20);

/** Beside `appearance`, not in it: an earlier version keeps what it does not know at the top of the file. */
export const WidgetDisplay = z
  .strictObject({
    theme: z.enum(['auto', 'light', 'dark']).default('auto').meta({ description: '`auto`: as the visitor’s system has it.' }),
    offsetSide: offset.meta({ description: 'From the side of the window, in pixels.' }),
    offsetBottom: offset.meta({ description: 'From its lower end, in pixels.' }),
    zIndex: z
      .int()
      .nonnegative()
      .max(2_147_483_647)
      .default(2_147_483_000)
      .meta({ description: 'Above what of the page it lies, and below what.' }),
    launcher: z
      .enum(['shown', 'hidden'])
      .default('shown')
      .meta({ description: '`hidden`: elements of the page with `data-concierge-open` open the panel.' }),
    files: z.enum(['allowed', 'refused']).default('allowed').meta({ description: 'Whether visitors may send files.' }),
    texts: z
      .strictObject({ en: WidgetTexts, de: WidgetTexts, es: WidgetTexts, fr: WidgetTexts, pt: WidgetTexts, ar: WidgetTexts })
      .prefault({})
      .meta({ description: 'The owner’s own texts by language.' }),
  })
  .meta({ id: 'WidgetDisplay' });
export type WidgetDisplay = z.infer<typeof WidgetDisplay>;

const settings = {
  enabled: z.boolean().default(false),
  /** Pages of no other origin may use it; with none, no page may. */
  origins: z.array(Origin).max(limits.widgetOriginsMax).default([]),
  /** Only visitors with a token that the tenant's server has signed. */
  requireSenderToken: z.boolean().default(false),
  appearance: WidgetAppearance.prefault({}),
  team: WidgetTeam.prefault({}).meta({ description: 'When staff answers, and what happens when it does not.' }),
  display: WidgetDisplay.prefault({}).meta({ description: 'Theme, place, button and texts by language.' }),
};

/** PUT /api/widget: what is left out gets its default. */
export const WidgetBody = z.strictObject(settings).meta({ id: 'WidgetBody' });
export type WidgetBody = z.infer<typeof WidgetBody>;

/** tenants/<id>/widget/widget.json */
export const WidgetRecord = z.strictObject({
  version: z.literal(1),
  ...WidgetBody.shape,
  key: WidgetKey,
  /** Sealed (see `TenantSecrets`); null as long as none was made. */
  sealedSecret: z.string().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type WidgetRecord = z.infer<typeof WidgetRecord>;

export const WidgetView = z
  .object({
    ...WidgetBody.shape,
    /** Null as long as nothing was set. */
    key: WidgetKey.nullable(),
    /** `unreadable`: sealed for another tenant id, or with another SECRETS_KEY; make a new one. */
    secret: z.enum(['unset', 'set', 'unreadable']),
    updatedAt: z.iso.datetime().nullable(),
    /** Why its file cannot be used; nothing is answered to visitors then. */
    problem: z.string().nullable(),
  })
  .meta({ id: 'Widget' });
export type WidgetView = z.infer<typeof WidgetView>;

export const WidgetSecret = z
  .object({ secret: z.string().meta({ description: 'Signs sender tokens; shown this once.' }) })
  .meta({ id: 'WidgetSecret' });

const seconds = z.int().nonnegative().max(limits.secondsMax);

/** All that a sender token contains: there is one way to sign it, so it names none. */
export const SenderClaims = z.strictObject({
  /** The tenant's own id of the visitor. */
  sub: shownText(limits.widgetSubjectMaxCharacters).min(1),
  name: shownText(limits.contactNameMaxCharacters).optional(),
  iat: seconds,
  exp: seconds,
});
export type SenderClaims = z.infer<typeof SenderClaims>;

export const WidgetMessageBody = z
  .strictObject({
    message: MessageText,
    attachments: z
      .array(UploadId)
      .max(limits.attachmentsMax)
      .default([])
      .meta({ description: 'The ids of files that POST /widget/uploads has answered.' }),
  })
  .meta({ id: 'WidgetMessageBody' });
export type WidgetMessageBody = z.infer<typeof WidgetMessageBody>;

/** What a visitor may know of a reply. */
export const WidgetReply = z.object({ turnId: z.string(), reply: z.string(), finishReason: FinishReason }).meta({ id: 'WidgetReply' });
export type WidgetReply = z.infer<typeof WidgetReply>;

/** One message as a visitor sees it: an agent's texts of one turn are one message, whatever it did in between. */
export const WidgetMessage = z.object({
  id: z.string(),
  turnId: z.string(),
  from: z.enum(['visitor', 'agent', 'person']),
  text: z.string(),
  at: z.iso.datetime(),
  /** The names of the files that a visitor has sent with it. */
  files: z.array(z.string()),
});
export type WidgetMessage = z.infer<typeof WidgetMessage>;

export const WidgetConversation = z
  .object({
    messages: z.array(WidgetMessage),
    /** A staff member has the conversation; the agent is silent. */
    withPerson: z.boolean(),
    /** When it is worth asking again. */
    askAgainSeconds: z.int().positive(),
  })
  .meta({ id: 'WidgetConversation' });
export type WidgetConversation = z.infer<typeof WidgetConversation>;
