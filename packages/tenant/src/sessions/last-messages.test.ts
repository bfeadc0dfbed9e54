import { describe, expect, it } from '@jest/globals';
import { codePoints, limits, type SessionMessage } from '@concierge/contract';
import { findLastReply } from './last-messages.ts';

function readReply(text: string): string {
  const reply: SessionMessage = { id: 't_1.1', turnId: 't_1', at: '2026-11-20T10:00:00.000Z', role: 'assistant', text };
  return findLastReply({ messages: [reply] }, 't_1');
}

describe('the last reply of an agent', () => {
  it('is all of it, as long as a message may hold that', () => {
    const text = 'a'.repeat(limits.messageMaxCharacters);
    expect(readReply(` ${text}\n`)).toBe(text);
  });

  it('can be seen to go on where a message cannot hold it', () => {
    const reply = readReply('😀'.repeat(limits.messageMaxCharacters + 1));
    expect(codePoints(reply)).toBeLessThanOrEqual(limits.messageMaxCharacters);
    expect(reply).toMatch(/^(?:😀)+\uFFFD?\n\n\[…\]$/u);
  });
});
