import type { InboundConversation, InboundSender } from '../channel-adapter.ts';
import type { Chat, Message, User } from './wire.ts';

/** Administrators of a group may write as the group: Telegram then names this user, and the group as `sender_chat`. */
const anonymousAdmin = '1087968824';

export function senderOf({ id, first_name, last_name }: User): InboundSender {
  const displayName = [first_name, last_name].filter((name) => name !== undefined).join(' ');
  return { id, aliases: [], displayName: displayName === '' ? null : displayName, isExternal: false };
}

/** Returns the sender, or why there is none. Two bots would answer each other for ever. */
export function personOf({ from, sender_chat }: Message): InboundSender | 'no_sender' | 'from_bot' {
  if (from === undefined) return 'no_sender';
  if (from.id === anonymousAdmin && sender_chat !== undefined)
    return { id: sender_chat.id, aliases: [], displayName: sender_chat.title ?? null, isExternal: false };
  return from.is_bot === true ? 'from_bot' : senderOf(from);
}

/** A thread outside of forums is only a chain of replies: Telegram refuses an answer that names it. */
export function conversationOf({
  chat,
  is_topic_message,
  message_thread_id,
}: Pick<Message, 'chat' | 'is_topic_message' | 'message_thread_id'>): InboundConversation {
  const isThread = is_topic_message === true || chat.is_forum === true;
  return { id: chat.id, threadId: isThread ? (message_thread_id ?? null) : null, isGroup: isGroup(chat) };
}

/** The type is not always there; groups have negative numbers. */
function isGroup({ type, id }: Chat): boolean {
  return type === undefined ? id.startsWith('-') : type !== 'private';
}
