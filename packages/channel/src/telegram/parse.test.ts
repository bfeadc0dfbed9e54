import { describe, expect, it } from '@jest/globals';
import type { InboundItem } from '../channel-adapter.ts';
import { parseTelegram } from './parse.ts';

const nameless = { botToken: '300:token', secretToken: 'secret-token' };

/** The item for a group message with this text alone. */
function findKind(text: string, type: 'mention' | 'bot_command'): string | undefined {
  const message = {
    message_id: 1,
    date: 1_760_000_000,
    from: { id: 5, is_bot: false, first_name: 'Ann' },
    chat: { id: -100, type: 'supergroup', title: 'Team' },
    text,
    entities: [{ type, offset: 0, length: text.length }],
  };
  const delivery = parseTelegram(Buffer.from(JSON.stringify({ update_id: 1, message })), nameless);
  return delivery.kind === 'items' ? delivery.items[0]?.kind : delivery.kind;
}

describe('a bot that does not know its own name', () => {
  it('is addressed by the name of any bot', () => {
    expect([findKind('@shop_bot', 'mention'), findKind('/help@shop_bot', 'bot_command')]).toEqual(['message', 'message']);
  });

  it('is not addressed by the name of a user, nor by a command without a name', () => {
    for (const name of ['@ann', '@shop_bot2']) expect(findKind(name, 'mention')).toBe('ignored');
    for (const command of ['/help', '/robot']) expect(findKind(command, 'bot_command')).toBe('ignored');
  });
});

function read(update: object): readonly InboundItem[] {
  const delivery = parseTelegram(Buffer.from(JSON.stringify(update)), nameless);
  return delivery.kind === 'items' ? delivery.items : [];
}

function messageWith(fields: object): object {
  const message = {
    message_id: 1,
    from: { id: 5, is_bot: false, first_name: 'Ada' },
    chat: { id: 5, type: 'private' },
    date: 1,
    ...fields,
  };
  return { update_id: 7, message };
}

describe('an update of Telegram', () => {
  it('reads the words on a pressed button, not only what the bot calls it', () => {
    const inline_keyboard = [
      [{ text: 'No', callback_data: 'no:1' }],
      [{ text: 'Yes, please', callback_data: 'yes:1' }, { url: 'https://e.example/' }],
    ];
    const message = { message_id: 3, chat: { id: 5, type: 'private' }, reply_markup: { inline_keyboard } };
    const query = { id: 'q', from: { id: 5, is_bot: false, first_name: 'Ada' }, message };
    const press = (data: string) => read({ update_id: 8, callback_query: { ...query, data } })[1];
    expect(press('yes:1')).toMatchObject({ text: 'Yes, please', choice: { kind: 'callback', id: 'yes:1', title: 'Yes, please' } });
    expect(press('gone:1')).toMatchObject({ text: 'gone:1', choice: { kind: 'callback', id: 'gone:1', title: null } });
  });

  it('reports that a chat is gone, and that it is back', () => {
    const member = (status: string) => ({
      update_id: 9,
      my_chat_member: { chat: { id: 5, type: 'private' }, new_chat_member: { status } },
    });
    expect(read(member('kicked'))).toEqual([{ kind: 'unreachable', conversationId: '5' }]);
    expect(read(member('member'))).toEqual([{ kind: 'reachable', conversationId: '5' }]);
    expect(read(member('restricted'))).toMatchObject([{ kind: 'ignored' }]);
  });

  it('is answered in its topic, and in none where its thread is a chain of replies in the general topic', () => {
    const chat = { id: -100, type: 'supergroup', title: 'Team', is_forum: true };
    const reply_to_message = { message_id: 41, from: { id: 300, is_bot: true }, chat };
    const write = (fields: object) => read(messageWith({ chat, text: 'And then?', reply_to_message, ...fields }));
    expect(write({ message_thread_id: 7, is_topic_message: true })).toMatchObject([{ conversation: { id: '-100', threadId: '7' } }]);
    expect(write({ message_thread_id: 41 })).toMatchObject([{ conversation: { id: '-100', threadId: null } }]);
  });

  it('reports the album of a picture', () => {
    const photo = [{ file_id: 'l', width: 900, height: 600 }];
    expect(read(messageWith({ photo, media_group_id: '131' }))).toMatchObject([{ albumId: '131' }]);
    expect(read(messageWith({ photo }))).not.toMatchObject([{ albumId: '131' }]);
  });
});
