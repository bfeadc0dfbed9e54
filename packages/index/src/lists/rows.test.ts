import { describe, expect, it } from '@jest/globals';
import type { SessionMessage, TurnRecord } from '@concierge/contract';
import { sessionDetails, toRemovedSession, usageOfTurn } from './rows.ts';

const session = {
  id: 's',
  agent: 'cs',
  channel: 'web',
  revision: 1,
  createdAt: '2026-03-01T10:00:00.000Z',
  updatedAt: '2026-03-01T10:00:00.000Z',
  title: '',
  messageCount: 0,
} as const;

function turn(models: TurnRecord['models'], endedAt = '2026-03-01T23:59:59.999Z'): TurnRecord {
  const times = { acceptedAt: endedAt, startedAt: null, firstTextAt: null, endedAt };
  const rest = {
    origin: 'api',
    attempts: 1,
    usage: { inputTokens: 0, outputTokens: 0 },
    finishReason: 'stop',
    error: null,
    requestHash: '',
    keyId: null,
  } as const;
  return { id: endedAt, status: 'done', ...times, ...rest, models, steps: [] };
}

const used = (model: string, costUsd: number | null) => ({
  model,
  inputTokens: 10,
  outputTokens: 2,
  cachedInputTokens: 1,
  calls: 1,
  costUsd,
});

describe('sessionDetails', () => {
  const base = { turnId: 't', at: session.updatedAt };
  const answer: SessionMessage = { ...base, id: 'a', role: 'assistant', text: 'On Monday.', by: { kind: 'operator' } };
  const details = (messages: SessionMessage[]) => sessionDetails({ ...session, messages }, []);

  it('has a picture or a place that a contact sends without a word as the last message', () => {
    const place: SessionMessage = { ...base, id: 'u', role: 'user', text: '', sent: '[A place.]' };
    const file = { id: `u_${'0'.repeat(32)}`, name: 'parcel.jpg', type: 'image/jpeg', size: 3 } as const;
    const last = { from: 'contact', text: 'parcel.jpg', at: session.updatedAt };
    const shown = details([answer, { ...place, attachments: [file] }]);
    expect([shown.last_from, shown.last_message]).toEqual(['contact', JSON.stringify(last)]);
    expect(details([answer, place]).last_from).toBe('contact');
  });

  it('has no message that only calls tools', () => {
    const call: SessionMessage = { ...base, id: 'c', role: 'assistant', text: '', toolCalls: [{ id: '1', name: 'read', arguments: '{}' }] };
    expect(details([answer, call]).last_from).toBe('person');
  });
});

describe('usageOfTurn', () => {
  it('counts a turn once for each model, on the UTC day of its end', () => {
    const rows = usageOfTurn(session, turn([used('a/x', 0.1), used('a/y', null), used('a/x', 0.2)], '2026-03-01T23:30:00.000-02:00'));
    expect(rows).toEqual([
      {
        day: '2026-03-02',
        agent: 'cs',
        channel: 'web',
        model: 'a/x',
        turns: 1,
        calls: 2,
        inputTokens: 20,
        cachedInputTokens: 2,
        outputTokens: 4,
        costUsd: 0.3,
      },
      {
        day: '2026-03-02',
        agent: 'cs',
        channel: 'web',
        model: 'a/y',
        turns: 1,
        calls: 1,
        inputTokens: 10,
        cachedInputTokens: 1,
        outputTokens: 2,
        costUsd: null,
      },
    ]);
  });
});

describe('toRemovedSession', () => {
  it('sums days and models, a known price with an unknown one to the known', () => {
    const removed = toRemovedSession(
      session,
      [turn([used('a/x', 0.1)]), turn([used('a/x', null)]), turn([used('a/x', 0.2)], '2026-03-02T00:00:00.000Z')],
      new Date(0),
    );
    expect(removed).toMatchObject({ id: 's', createdAt: session.createdAt, removedAt: '1970-01-01T00:00:00.000Z' });
    expect(removed.usage.map(({ day, turns, costUsd }) => [day, turns, costUsd])).toEqual([
      ['2026-03-01', 2, 0.1],
      ['2026-03-02', 1, 0.2],
    ]);
  });
});
