import { z } from 'zod';
import { id, list, maybe, milliseconds } from '../inbound/json.ts';

/** What is read of the webhooks of Messenger and Instagram. */

export const Envelope = z.object({ object: maybe(z.string()), entry: list });

export const Entry = z.object({ id: maybe(id), messaging: list, standby: list, changes: list });

export const Attachment = z.object({
  type: maybe(z.string()),
  payload: maybe(
    z.object({
      url: maybe(z.string()),
      sticker_id: maybe(id),
      title: maybe(z.string()),
      coordinates: maybe(z.object({ lat: z.number(), long: z.number() })),
    }),
  ),
});
export type Attachment = z.infer<typeof Attachment>;

const flag = maybe(z.boolean());

export const Message = z.object({
  mid: maybe(id),
  text: maybe(z.string()),
  is_echo: flag,
  is_self: flag,
  is_deleted: flag,
  is_unsupported: flag,
  attachments: list,
  quick_reply: maybe(z.object({ payload: maybe(z.string()) })),
  reply_to: maybe(z.object({ mid: maybe(id), story: maybe(z.object({ id: maybe(id) })) })),
});
export type Message = z.infer<typeof Message>;

export const Item = z.object({
  sender: maybe(z.object({ id: maybe(id) })),
  timestamp: maybe(milliseconds),
  message: maybe(Message),
  postback: maybe(z.object({ mid: maybe(id), title: maybe(z.string()), payload: maybe(z.string()) })),
  delivery: maybe(z.object({ mids: list, watermark: maybe(milliseconds) })),
  read: maybe(z.object({ mid: maybe(id), watermark: maybe(milliseconds) })),
  reaction: z.unknown().optional(),
  message_edit: z.unknown().optional(),
});
export type Item = z.infer<typeof Item>;
