import type { TelegramSettings } from '@concierge/contract';
import type {
  Delivery,
  InboundItem,
  InboundLocation,
  InboundMessage,
  MediaKind,
  MediaReference,
  InboundConversation,
  InboundSender,
} from '../channel-adapter.ts';
import { eventName, ignored, textOrNull, media, messageOrEmpty, orNull } from '../inbound/items.ts';
import { readJson } from '../inbound/json.ts';
import {
  Button,
  ButtonRow,
  CallbackQuery,
  MyChatMember,
  Update,
  Entity,
  Message,
  PhotoSize,
  type File,
  type Chat,
  type User,
} from './wire.ts';

/** One update. Which bot it is for is decided by the token that it came with: each webhook has its own. */
export function parseTelegram(body: Uint8Array, settings: TelegramSettings): Delivery {
  const json = readJson(body);
  return json === undefined ? { kind: 'malformed' } : { kind: 'items', items: readUpdate(json, settings) };
}

function readUpdate(json: unknown, settings: TelegramSettings): InboundItem[] {
  const update = Update.safeParse(json).data;
  if (update === undefined) return [ignored('no_id')];
  const { update_id, message, callback_query, my_chat_member } = update;
  if (message !== undefined) {
    const bot = { id: /^\d+(?=:)/u.exec(settings.botToken)?.[0], name: settings.botUsername?.toLowerCase() };
    return [readMessage(message, { updateId: update_id, bot })];
  }
  if (callback_query !== undefined) return readCallback(callback_query, update_id);
  if (my_chat_member !== undefined) return [readMembership(my_chat_member)];
  return [ignored('other_event', eventName(Object(json), ['update_id']))];
}

/**
 * A pressed button: who pressed it is not who wrote the message above it, which is the bot, and which may no longer be
 * there.
 */
function readCallback(json: unknown, updateId: string): InboundItem[] {
  const query = CallbackQuery.safeParse(json).data;
  if (query === undefined) return [ignored('unreadable', 'callback_query')];
  const { id: callbackId, from, data, message } = query;
  const waiting = { kind: 'callback', callbackId } as const;
  const pressed = textOrNull(data);
  if (from.is_bot === true) return [waiting, ignored('from_bot', updateId)];
  // On a message of inline mode there is no chat to answer in; a game has no data.
  if (message === undefined || pressed === null) return [waiting, ignored('other_event', 'callback_query')];
  const title = findLabel(pressed, message.reply_markup?.inline_keyboard ?? []);
  return [
    waiting,
    {
      kind: 'message',
      providerMessageId: updateId,
      eventId: null,
      messageRef: `${message.chat.id}/${message.message_id}`,
      sender: readSender(from),
      conversation: readConversation(message),
      text: title ?? pressed,
      media: [],
      choice: { kind: 'callback', id: pressed, title },
      replyTo: null,
      sentAtMs: null,
    },
  ];
}

/**
 * The query has what the bot calls the button; what the user read stands in the message above it, as long as that is
 * there.
 */
function findLabel(pressed: string, keyboard: readonly unknown[]): string | null {
  const buttons = keyboard.flatMap((row) => ButtonRow.safeParse(row).data ?? []).map((button) => Button.safeParse(button).data);
  return textOrNull(buttons.find((button) => button?.callback_data === pressed)?.text);
}

function readMembership(json: unknown): InboundItem {
  const change = MyChatMember.safeParse(json).data;
  if (change === undefined) return ignored('unreadable', 'my_chat_member');
  const { status } = change.new_chat_member;
  const conversationId = change.chat.id;
  if (status === 'kicked' || status === 'left') return { kind: 'unreachable', conversationId };
  const mayWrite = status === 'member' || status === 'administrator' || status === 'creator';
  return mayWrite ? { kind: 'reachable', conversationId } : ignored('other_event', 'my_chat_member');
}

/** A command and a name have 32 characters each at most, and a sign before each of them. */
const NAME_MAX_UNITS = 100;

interface Bot {
  readonly id: string | undefined;
  /** Its user name in small letters; without it no mention can be recognised. */
  readonly name: string | undefined;
}

function readMessage(json: unknown, { updateId, bot }: { readonly updateId: string; readonly bot: Bot }): InboundItem {
  const message = Message.safeParse(json).data;
  if (message === undefined) return ignored('unreadable', updateId);
  const migration = readMigration(message);
  if (migration !== undefined) return migration;
  const sender = findSender(message);
  if (typeof sender === 'string') return ignored(sender, updateId);
  if (isEcho(message, bot)) return ignored('echo', updateId);
  const item = messageOrEmpty({ ...buildEnvelope(message, updateId), ...readContent(message), sender });
  // Service messages, of which there are many kinds, have no content at all.
  return item.kind === 'message' && item.conversation.isGroup && !isAddressed(message, bot) ? ignored('not_addressed', updateId) : item;
}

/** Posted through the bot's inline mode, or by Telegram itself as the copy of a channel's post. */
function isEcho({ is_automatic_forward, via_bot }: Message, bot: Bot): boolean {
  return is_automatic_forward === true || (bot.id !== undefined && via_bot?.id === bot.id);
}

function buildEnvelope(message: Message, updateId: string) {
  return {
    kind: 'message',
    providerMessageId: updateId,
    eventId: null,
    messageRef: `${message.chat.id}/${message.message_id}`,
    conversation: readConversation(message),
    ...(message.media_group_id !== undefined && { albumId: message.media_group_id }),
    replyTo: orNull(message.reply_to_message?.message_id),
    sentAtMs: orNull(message.date),
  } as const satisfies Partial<InboundMessage>;
}

function readContent(message: Message): Pick<InboundMessage, 'text' | 'media' | 'location' | 'cards'> {
  const location = readLocation(message);
  return {
    text: textOrNull(message.text) ?? textOrNull(message.caption),
    media: readMedia(message),
    ...(location !== undefined && { location }),
    ...(message.contact !== undefined && { cards: [joinNames(message.contact)] }),
  };
}

/** The conversation goes on under another number. Telegram sends a message to both chats. */
function readMigration({ chat, migrate_to_chat_id, migrate_from_chat_id }: Message): InboundItem | undefined {
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
    return isBotName(word, bot);
  });
}

/**
 * While the bot's own name is unknown, any bot's name matches. With privacy mode, which is the default, Telegram
 * delivers nothing that is meant for others.
 */
function isBotName(word: string, bot: Bot): boolean {
  const at = word.indexOf('@');
  const name = at === -1 ? '' : word.slice(at + 1);
  return bot.name === undefined ? name.endsWith('bot') : name === bot.name;
}

function readMedia(message: Message): MediaReference[] {
  const photo = readPhoto(message.photo);
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
function readPhoto(photo: readonly unknown[]): MediaReference | undefined {
  const sizes = photo.map((size) => PhotoSize.safeParse(size).data).filter((size) => size !== undefined);
  const [largest] = sizes.toSorted((a, b) => b.width * b.height - a.width * a.height);
  return largest === undefined ? undefined : media({ kind: 'image', id: largest.file_id, bytes: largest.file_size ?? null });
}

/** A venue repeats its place as a location. */
function readLocation({ location, venue }: Message): InboundLocation | undefined {
  const found = venue?.location ?? location;
  return found === undefined ? undefined : { ...found, name: venue?.title ?? null, address: venue?.address ?? null };
}

function joinNames({ first_name, last_name }: NonNullable<Message['contact']>): string {
  return last_name === undefined ? first_name : `${first_name} ${last_name}`;
}

/** Administrators of a group may write as the group: Telegram then names this user, and the group as `sender_chat`. */
const anonymousAdmin = '1087968824';

function readSender({ id, first_name, last_name }: User): InboundSender {
  const displayName = [first_name, last_name].filter((name) => name !== undefined).join(' ');
  return { id, aliases: [], displayName: displayName === '' ? null : displayName, isExternal: false };
}

/** Returns the sender, or why there is none. Two bots would answer each other for ever. */
function findSender({ from, sender_chat }: Message): InboundSender | 'no_sender' | 'from_bot' {
  if (from === undefined) return 'no_sender';
  if (from.id === anonymousAdmin && sender_chat !== undefined)
    return { id: sender_chat.id, aliases: [], displayName: sender_chat.title ?? null, isExternal: false };
  return from.is_bot === true ? 'from_bot' : readSender(from);
}

/**
 * A thread that is no topic is only a chain of replies, in the general topic of a forum, too: Telegram refuses an
 * answer that names it.
 */
function readConversation({
  chat,
  is_topic_message,
  message_thread_id,
}: Pick<Message, 'chat' | 'is_topic_message' | 'message_thread_id'>): InboundConversation {
  return { id: chat.id, threadId: is_topic_message === true ? (message_thread_id ?? null) : null, isGroup: isGroup(chat) };
}

/** The type is not always there; groups have negative numbers. */
function isGroup({ type, id }: Chat): boolean {
  return type === undefined ? id.startsWith('-') : type !== 'private';
}
