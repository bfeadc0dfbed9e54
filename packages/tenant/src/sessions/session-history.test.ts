import { describe, expect, it } from '@jest/globals';
import type { SessionMessage, ToolMessage, UserMessage } from '@concierge/contract';
import { mergeMessages } from './session-history.ts';

const at = '2026-11-20T10:00:00.000Z';
const user = (id: string): UserMessage => ({ id, turnId: 't1', at, role: 'user', text: id, sent: id });
const tool = (id: string, output: string): ToolMessage => ({
  id,
  turnId: 't1',
  at,
  role: 'tool',
  callId: id,
  name: 'read',
  output,
  isError: false,
});
const ids = (messages: readonly SessionMessage[]): string[] => messages.map((message) => message.id);

describe('a conversation from its two files', () => {
  it('is the history and then the rest', () => {
    expect(ids(mergeMessages([user('1'), user('2')], [user('3')]))).toEqual(['1', '2', '3']);
  });

  it('has each message once, in order, when compaction stopped after the history was written', () => {
    expect(ids(mergeMessages([user('1'), user('2')], [user('1'), user('2'), user('3')]))).toEqual(['1', '2', '3']);
  });

  it('shows a tool result whole that was cut in the session', () => {
    const merged = mergeMessages([user('1'), tool('3', 'all of it')], [user('2'), tool('3', 'cut'), user('4')]);
    expect(ids(merged)).toEqual(['1', '2', '3', '4']);
    expect(merged[2]).toMatchObject({ output: 'all of it' });
  });
});
