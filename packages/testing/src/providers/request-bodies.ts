import { z } from 'zod';

/** What is wrong with a request, in the words that providers have errors for. */
export interface BodyProblem {
  readonly kind: 'unknown' | 'missing' | 'wrong_type' | 'wrong_value';
  /** `reply_parameters.message_id` */
  readonly path: string;
  /** The type in the schema: `number`, `string` … */
  readonly expected: string;
}

/** The first problem of a body; undefined when a real server would take it. */
export function findBodyProblem(schema: z.ZodType, body: unknown): BodyProblem | undefined {
  const parsed = schema.safeParse(body);
  const issue = parsed.error?.issues[0];
  if (issue === undefined) return undefined;
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') return { kind: 'unknown', path: [...path, issue.keys[0] ?? ''].join('.'), expected: 'nothing' };
  const expected = issue.code === 'invalid_type' ? issue.expected : issue.message;
  const wrong = issue.code === 'invalid_type' ? 'wrong_type' : 'wrong_value';
  return { kind: valueAt(body, path) === undefined ? 'missing' : wrong, path: path.join('.'), expected };
}

function valueAt(body: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined), body);
}

const text = z.string();
const thread = z.int().optional();
const chat = z.union([z.int(), z.string().regex(/^@\w+$/u)]);

/** Telegram reads numbers as numbers: `null`, which is what JSON makes of NaN, and digits in quotes are neither. */
export const telegramBodies = {
  sendMessage: z.strictObject({
    chat_id: chat,
    message_thread_id: thread,
    text,
    parse_mode: z.enum(['HTML', 'MarkdownV2', 'Markdown']).optional(),
    link_preview_options: z.strictObject({ is_disabled: z.boolean() }).optional(),
    reply_parameters: z.strictObject({ message_id: z.int(), allow_sending_without_reply: z.boolean().optional() }).optional(),
  }),
  sendChatAction: z.strictObject({ chat_id: chat, message_thread_id: thread, action: z.literal('typing') }),
  answerCallbackQuery: z.strictObject({ callback_query_id: text }),
  getFile: z.strictObject({ file_id: text }),
  setWebhook: z.strictObject({ url: text, secret_token: text, allowed_updates: z.array(text).optional() }),
} as const;

const filled = z.string().min(1);

/** An id of a group is in base64; a WhatsApp user is a number, or a name that begins with a country. */
const toPerson = { recipient_type: z.literal('individual'), to: z.string().regex(/^\+?\d{1,20}$/u) };
const toNamedPerson = { recipient_type: z.literal('individual'), recipient: z.string().regex(/^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/u) };
const toGroup = { recipient_type: z.literal('group'), to: z.string().regex(/^(?=.*[A-Za-z])[A-Za-z0-9+/_=-]{16,}$/u) };

const textContent = {
  messaging_product: z.literal('whatsapp'),
  type: z.literal('text'),
  text: z.strictObject({ body: filled, preview_url: z.boolean().optional() }),
  context: z.strictObject({ message_id: filled }).optional(),
  biz_opaque_callback_data: z.string().max(512).optional(),
};
const templateContent = {
  messaging_product: z.literal('whatsapp'),
  type: z.literal('template'),
  template: z.strictObject({
    name: filled,
    language: z.strictObject({ code: filled }),
    components: z
      .array(z.strictObject({ type: z.literal('body'), parameters: z.array(z.strictObject({ type: z.literal('text'), text: filled })) }))
      .optional(),
  }),
  biz_opaque_callback_data: z.string().max(512).optional(),
};

/** Chooses the schema by type and recipient of a message: a union would not name the wrong field. */
export function whatsAppMessage(body: Readonly<Record<string, unknown>>): z.ZodType {
  const place = body['recipient_type'] === 'group' ? toGroup : body['recipient'] === undefined ? toPerson : toNamedPerson;
  return z.strictObject({ ...place, ...(body['type'] === 'template' ? templateContent : textContent) });
}

export const whatsAppRead = z.strictObject({
  messaging_product: z.literal('whatsapp'),
  status: z.literal('read'),
  message_id: filled,
  typing_indicator: z.strictObject({ type: z.literal('text') }).optional(),
});

const messengerPerson = z.strictObject({ id: z.string().regex(/^\d{1,32}$/u) });

export const messengerBodies = {
  message: z.strictObject({
    recipient: messengerPerson,
    messaging_type: z.enum(['RESPONSE', 'UPDATE', 'MESSAGE_TAG']),
    message: z.strictObject({ text: filled, metadata: z.string().max(1000).optional() }),
  }),
  action: z.strictObject({ recipient: messengerPerson, sender_action: z.enum(['typing_on', 'typing_off', 'mark_seen']) }),
} as const;

const timestamp = z.string().regex(/^\d{1,12}\.\d{6}$/u);

export const slackBodies = {
  'chat.postMessage': z.strictObject({
    channel: filled,
    text: z.string().optional(),
    thread_ts: timestamp.optional(),
    mrkdwn: z.boolean().optional(),
    unfurl_links: z.boolean().optional(),
    unfurl_media: z.boolean().optional(),
  }),
  'assistant.threads.setStatus': z.strictObject({ channel_id: filled, thread_ts: timestamp, status: z.string() }),
} as const;

/** Forms have strings alone. */
export const twilioMessage = z.strictObject({
  To: filled,
  From: filled.optional(),
  MessagingServiceSid: z
    .string()
    .regex(/^MG[0-9a-f]{32}$/u)
    .optional(),
  Body: filled,
  StatusCallback: z.url().optional(),
});
