import { z } from 'zod';
import { Channel } from '../channels/channel.ts';
import { limits } from '../limits.ts';
import { fitsMessage } from '../values/text.ts';
import { FinishReason, JsonObject } from './turn-event.ts';

export const uploadTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'text/plain'] as const;
export const UploadType = z.enum(uploadTypes);

export const UploadId = z.string().regex(/^u_[0-9a-f]{32}$/u);

/** What POST /api/uploads answers and a session keeps: the reference, never the bytes. */
export const UploadRef = z
  .object({ id: UploadId, name: z.string().min(1).max(255), type: UploadType, size: z.int().nonnegative() })
  .meta({ id: 'UploadRef' });
export type UploadRef = z.infer<typeof UploadRef>;

export const ContactId = z.string().regex(/^[0-9a-f]{32}$/u, 'is not a contact_id');

export const MessageText = z
  .string()
  .min(1, 'must not be empty')
  .refine(fitsMessage, `must be at most ${String(limits.messageMaxCharacters)} characters long`)
  .meta({ description: '1 to 32000 characters, counted in Unicode code points', minLength: 1, maxLength: limits.messageMaxCharacters });

const attachments = z
  .array(z.union([UploadRef.strict(), UploadId.transform((id) => ({ id }))], 'must be what POST /api/uploads answered, or its id'))
  .max(limits.attachmentsMax)
  .optional();

export const AdminChatBody = z
  .strictObject({ message: MessageText, contact_id: ContactId.optional(), attachments })
  .meta({ id: 'AdminChatBody' });

export const CsChatBody = z
  .strictObject({
    message: MessageText,
    contact_id: ContactId.optional(),
    sender: z.string().min(1).max(limits.senderMaxCharacters).optional(),
    channel: Channel.default('web'),
    attachments,
  })
  .meta({ id: 'CsChatBody' });

/** For any agent: what is only for some of them the handler refuses for the others. */
export const AgentChatBody = CsChatBody.extend({ channel: Channel.optional() }).meta({ id: 'AgentChatBody' });

/** What a client sends to an agent. */
export type ChatBody = z.input<typeof AgentChatBody>;

export const BusyPolicy = z.enum(['queue', 'reject', 'interrupt']);
export type BusyPolicy = z.infer<typeof BusyPolicy>;
export const ChatQuery = z.strictObject({ busy: BusyPolicy.default('queue') });

export const Usage = z.object({ inputTokens: z.int().nonnegative(), outputTokens: z.int().nonnegative() }).meta({ id: 'Usage' });
export type Usage = z.infer<typeof Usage>;

/** The single JSON reply (contract §3): the same events, folded. */
export const ChatReply = z
  .object({
    contact_id: ContactId,
    turnId: z.string(),
    reply: z.string(),
    toolCalls: z.array(z.object({ id: z.string(), name: z.string(), input: JsonObject, output: z.string(), isError: z.boolean() })),
    usage: Usage,
    finishReason: FinishReason,
  })
  .meta({ id: 'ChatReply' });
export type ChatReply = z.infer<typeof ChatReply>;
