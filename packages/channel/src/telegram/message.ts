import type { InboundItem, InboundLocation, InboundMessage, MediaKind, MediaReference } from '../channel-adapter.ts';
import { ignored, media, messageOrEmpty, orNull, textOrNull } from '../inbound/items.ts';
import { conversationOf, personOf } from './people.ts';
import { Entity, Message, PhotoSize, type File } from './wire.ts';

/** A command and a name have 32 characters each at most, and a sign before each of them. */
const NAME_MAX_UNITS = 100;

export interface Bot {
  readonly id: string | undefined;
  /** Its user name in small letters; without it no mention can be recognised. */
  readonly name: string | undefined;
}

export function readMessage(json: unknown, { updateId, bot }: { readonly updateId: string; readonly bot: Bot }): InboundItem {
  const message = Message.safeParse(json).data;
  if (message === undefined) return ignored('unreadable', updateId);
  const migration = migrationOf(message);
  if (migration !== undefined) return migration;
  const sender = personOf(message);
  if (typeof sender === 'string') return ignored(sender, updateId);
  if (isEcho(message, bot)) return ignored('echo', updateId);
  const item = messageOrEmpty({ ...envelopeOf(message, updateId), ...contentOf(message), sender });
  // Service messages, of which there are many kinds, have no content at all.
  return item.kind === 'message' && item.conversation.isGroup && !isAddressed(message, bot) ? ignored('not_addressed', updateId) : item;
}

/** Posted through the bot's inline mode, or by Telegram itself as the copy of a channel's post. */
function isEcho({ is_automatic_forward, via_bot }: Message, bot: Bot): boolean {
  return is_automatic_forward === true || (bot.id !== undefined && via_bot?.id === bot.id);
}

function envelopeOf(message: Message, updateId: string) {
  return {
    kind: 'message',
    providerMessageId: updateId,
    eventId: null,
    messageRef: `${message.chat.id}/${message.message_id}`,
    conversation: conversationOf(message),
    ...(message.media_group_id !== undefined && { albumId: message.media_group_id }),
    replyTo: orNull(message.reply_to_message?.message_id),
    sentAtMs: orNull(message.date),
  } as const satisfies Partial<InboundMessage>;
}

function contentOf(message: Message): Pick<InboundMessage, 'text' | 'media' | 'location' | 'cards'> {
  const location = locationOf(message);
  return {
    text: textOrNull(message.text) ?? textOrNull(message.caption),
    media: mediaOf(message),
    ...(location !== undefined && { location }),
    ...(message.contact !== undefined && { cards: [nameOf(message.contact)] }),
  };
}

/** The conversation goes on under another number. Telegram sends a message to both chats. */
function migrationOf({ chat, migrate_to_chat_id, migrate_from_chat_id }: Message): InboundItem | undefined {
  if (migrate_to_chat_id !== undefined) return { kind: 'alias', of: 'conversation', from: chat.id, to: migrate_to_chat_id };
  if (migrate_from_chat_id !== undefined) return { kind: 'alias', of: 'conversation', from: migrate_from_chat_id, to: chat.id };
  return undefined;
}

/** In a group: by name, by a command with the name, or by a reply to a message of the bot. */
function isAddressed(message: Message, bot: Bot): boolean {
  const { reply_to_message, message_thread_id, is_topic_message } = message;
  // The first message of a topic is what everything in the topic replies to.
  const isTopicRoot = is_topic_message === true && reply_to_message?.message_id === message_thread_id;
  if (bot.id !== undefined && reply_to_message?.from?.id === bot.id && !isTopicRoot) return true;
  return names(message.text, message.entities, bot) || names(message.caption, message.caption_entities, bot);
}

/**
 * Offsets are counted in UTF-16 units, as strings here are. Never by searching the text: names may begin with this
 * bot's.
 */
function names(text: string | undefined, entities: readonly unknown[], bot: Bot): boolean {
  return entities.some((json) => {
    const entity = Entity.safeParse(json).data;
    if (entity === undefined) return false;
    if (entity.type === 'text_mention') return bot.id !== undefined && entity.user?.id === bot.id;
    if (entity.type !== 'mention' && entity.type !== 'bot_command') return false;
    // Overlapping ones of the length of the text could cost its square.
    if (entity.length < 1 || entity.length > NAME_MAX_UNITS) return false;
    const word = (text ?? '').slice(entity.offset, entity.offset + entity.length).toLowerCase();
    return isNameOf(word, bot);
  });
}

/**
 * While the bot's own name is unknown, any bot's name matches. With privacy mode, which is the default, Telegram
 * delivers nothing that is meant for others.
 */
function isNameOf(word: string, bot: Bot): boolean {
  const at = word.indexOf('@');
  const name = at === -1 ? '' : word.slice(at + 1);
  return bot.name === undefined ? name.endsWith('bot') : name === bot.name;
}

function mediaOf(message: Message): MediaReference[] {
  const photo = largestOf(message.photo);
  const kinds: readonly (readonly [MediaKind, File | undefined])[] = [
    ['animation', message.animation],
    // The same file again, for readers that do not know animations.
    ['document', message.animation === undefined ? message.document : undefined],
    ['video', message.video],
    ['video', message.video_note],
    ['voice', message.voice],
    ['audio', message.audio],
    ['sticker', message.sticker],
  ];
  return [
    ...(photo === undefined ? [] : [photo]),
    ...kinds.flatMap(([kind, file]) => {
      if (file === undefined) return [];
      const { file_id, mime_type = null, file_name = null, file_size = null } = file;
      return [media({ kind, id: file_id, mediaType: mime_type, fileName: file_name, bytes: file_size })];
    }),
  ];
}

/** One picture in several sizes. */
function largestOf(photo: readonly unknown[]): MediaReference | undefined {
  const sizes = photo.map((size) => PhotoSize.safeParse(size).data).filter((size) => size !== undefined);
  const [largest] = sizes.toSorted((a, b) => b.width * b.height - a.width * a.height);
  return largest === undefined ? undefined : media({ kind: 'image', id: largest.file_id, bytes: largest.file_size ?? null });
}

/** A venue repeats its place as a location. */
function locationOf({ location, venue }: Message): InboundLocation | undefined {
  const place = venue?.location ?? location;
  return place === undefined ? undefined : { ...place, name: venue?.title ?? null, address: venue?.address ?? null };
}

function nameOf({ first_name, last_name }: NonNullable<Message['contact']>): string {
  return last_name === undefined ? first_name : `${first_name} ${last_name}`;
}
