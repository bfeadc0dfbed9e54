import type { ChannelSettings } from '@concierge/contract';
import type { Delivery, InboundItem } from '../channel-adapter.ts';
import { eventName, ignored, textOrNull } from '../inbound/items.ts';
import { readJson } from '../inbound/json.ts';
import { readMessage } from './message.ts';
import { conversationOf, senderOf } from './people.ts';
import { Button, ButtonRow, CallbackQuery, MyChatMember, Update } from './wire.ts';

/** One update. Which bot it is for is decided by the token that it came with: each webhook has its own. */
export function parseTelegram(body: Uint8Array, settings: ChannelSettings['channel_c']): Delivery {
  const json = readJson(body);
  return json === undefined ? { kind: 'malformed' } : { kind: 'items', items: readUpdate(json, settings) };
}

function readUpdate(json: unknown, settings: ChannelSettings['channel_c']): InboundItem[] {
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
  const title = labelOf(pressed, message.reply_markup?.inline_keyboard ?? []);
  return [
    waiting,
    {
      kind: 'message',
      providerMessageId: updateId,
      eventId: null,
      messageRef: `${message.chat.id}/${message.message_id}`,
      sender: senderOf(from),
      conversation: conversationOf(message),
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
function labelOf(pressed: string, keyboard: readonly unknown[]): string | null {
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
