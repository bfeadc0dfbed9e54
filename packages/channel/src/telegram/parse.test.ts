import { describe, expect, it } from '@jest/globals';
import { parseTelegram } from './parse.ts';

const nameless = { botToken: '300:token', secretToken: 'secret-token' };

/** What becomes of a message in a group that is nothing but this. */
function kindOf(text: string, type: 'mention' | 'bot_command'): string | undefined {
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

describe('a bot that has not been told its own name', () => {
  it('is addressed by the name of any bot', () => {
    expect([kindOf('@shop_bot', 'mention'), kindOf('/help@shop_bot', 'bot_command')]).toEqual(['message', 'message']);
  });

  it('is not addressed by the name of a person, nor by a command without a name', () => {
    for (const name of ['@ann', '@shop_bot2']) expect(kindOf(name, 'mention')).toBe('ignored');
    for (const command of ['/help', '/robot']) expect(kindOf(command, 'bot_command')).toBe('ignored');
  });
});
