import { describe, expect, it } from '@jest/globals';
import type { AssistantMessage, SessionMessage, ToolMessage, UserMessage } from '@concierge/contract';
import { repairUnpaired, unknownOutcome } from './session-repair.ts';

const at = '2026-11-20T10:00:00.000Z';
const user = (id: string): UserMessage => ({ id, turnId: 't1', at, role: 'user', text: id, sent: id });
const assistant = (id: string, ...calls: string[]): AssistantMessage => ({
  id,
  turnId: 't1',
  at,
  role: 'assistant',
  text: '',
  toolCalls: calls.map((call) => ({ id: call, name: 'read', arguments: '{}' })),
});
const result = (callId: string, id = `r-${callId}`): ToolMessage => ({
  id,
  turnId: 't1',
  at,
  role: 'tool',
  callId,
  name: 'read',
  output: `of ${callId}`,
  isError: false,
});

const summary = (messages: readonly SessionMessage[]): string[] =>
  messages.map((message) =>
    message.role === 'tool' ? `${message.callId}=${message.output === unknownOutcome ? 'unknown' : message.id}` : message.id,
  );

describe('repairing a conversation', () => {
  it('returns one that is whole as it is', () => {
    const messages = [user('u1'), assistant('a1', 'c1', 'c2'), result('c1'), result('c2'), assistant('a2'), user('u2')];
    expect(repairUnpaired(messages)).toBe(messages);
    expect(repairUnpaired([])).toEqual([]);
  });

  it('closes an unanswered call right behind the other results, as an error', () => {
    const repaired = repairUnpaired([user('u1'), assistant('a1', 'c1', 'c2', 'c3'), result('c2'), user('u2')]);
    expect(summary(repaired)).toEqual(['u1', 'a1', 'c1=unknown', 'c2=r-c2', 'c3=unknown', 'u2']);
    expect(repaired[2]).toMatchObject({ role: 'tool', isError: true, turnId: 't1', name: 'read' });
  });

  it('closes calls at the very end', () => {
    expect(summary(repairUnpaired([user('u1'), assistant('a1', 'c1')]))).toEqual(['u1', 'a1', 'c1=unknown']);
  });

  it('moves a result that came late to its place', () => {
    expect(summary(repairUnpaired([assistant('a1', 'c1'), user('u1'), result('c1')]))).toEqual(['a1', 'c1=r-c1', 'u1']);
  });

  it('drops results of no call', () => {
    expect(summary(repairUnpaired([result('c0'), user('u1'), assistant('a1', 'c1'), result('c1'), result('c9')]))).toEqual([
      'u1',
      'a1',
      'c1=r-c1',
    ]);
  });

  it('keeps one of several messages, results and calls that are the same', () => {
    const messages = [user('u1'), user('u1'), assistant('a1', 'c1', 'c1'), assistant('a1', 'c1'), result('c1'), result('c1', 'again')];
    const repaired = repairUnpaired(messages);
    expect(summary(repaired)).toEqual(['u1', 'a1', 'c1=r-c1']);
    expect(repaired[1]).toMatchObject({ toolCalls: [{ id: 'c1' }] });
  });

  it('gives each of two calls with the same id its own result', () => {
    const messages = [assistant('a1', 'c1'), assistant('a2', 'c1'), result('c1', 'second')];
    expect(summary(repairUnpaired(messages))).toEqual(['a1', 'c1=unknown', 'a2', 'c1=second']);
  });

  it('is done when it is done once, and always the same', () => {
    const broken = [result('c0'), assistant('a1', 'c1', 'c2'), user('u1'), result('c2')];
    const once = repairUnpaired(broken);
    expect(repairUnpaired(once)).toBe(once);
    expect(repairUnpaired(broken)).toEqual(once);
  });
});
