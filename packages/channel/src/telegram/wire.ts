import { z } from 'zod';
import { id, list, maybe, seconds } from '../inbound/json.ts';

/** What is read of Telegram's updates. */

const flag = maybe(z.boolean());
const text = maybe(z.string());

const User = z.object({ id, is_bot: flag, first_name: text, last_name: text });
export type User = z.infer<typeof User>;

const Chat = z.object({ id, type: text });
export type Chat = z.infer<typeof Chat>;

const File = z.object({ file_id: id, mime_type: text, file_name: text, file_size: maybe(z.number()) });
export type File = z.infer<typeof File>;

export const PhotoSize = z.object({ file_id: id, width: z.number(), height: z.number(), file_size: maybe(z.number()) });

const Location = z.object({ latitude: z.number(), longitude: z.number() });

export const Entity = z.object({ type: z.string(), offset: z.int(), length: z.int(), user: maybe(z.object({ id })) });

export const Message = z.object({
  message_id: id,
  message_thread_id: maybe(id),
  is_topic_message: flag,
  is_automatic_forward: flag,
  from: maybe(User),
  sender_chat: maybe(z.object({ id, title: text })),
  via_bot: maybe(z.object({ id })),
  chat: Chat,
  date: maybe(seconds),
  media_group_id: maybe(id),
  reply_to_message: maybe(z.object({ message_id: id, from: maybe(z.object({ id })) })),
  text,
  entities: list,
  caption: text,
  caption_entities: list,
  photo: list,
  animation: maybe(File),
  document: maybe(File),
  video: maybe(File),
  video_note: maybe(File),
  voice: maybe(File),
  audio: maybe(File),
  sticker: maybe(File),
  location: maybe(Location),
  venue: maybe(z.object({ location: Location, title: text, address: text })),
  contact: maybe(z.object({ first_name: z.string(), last_name: text })),
  migrate_to_chat_id: maybe(id),
  migrate_from_chat_id: maybe(id),
});
export type Message = z.infer<typeof Message>;

export const CallbackQuery = z.object({
  id,
  from: User,
  data: text,
  message: maybe(
    z.object({
      message_id: id,
      message_thread_id: maybe(id),
      is_topic_message: flag,
      chat: Chat,
      reply_markup: maybe(z.object({ inline_keyboard: list })),
    }),
  ),
});

export const ButtonRow = z.array(z.unknown());
export const Button = z.object({ text: z.string(), callback_data: z.string() });

export const MyChatMember = z.object({ chat: Chat, new_chat_member: z.object({ status: z.string() }) });

export const Update = z.object({
  update_id: id,
  message: z.unknown().optional(),
  callback_query: z.unknown().optional(),
  my_chat_member: z.unknown().optional(),
});
