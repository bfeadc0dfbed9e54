import { describe, expect, it } from '@jest/globals';
import type { AcceptedTurn, TurnRecord } from '@concierge/contract';
import { endFacts, listWaits } from './ended-session.ts';

const acceptedAtMs = Date.parse('2026-11-26T10:00:00.000Z');
const at = (ms: number): string => new Date(acceptedAtMs + ms).toISOString();

const turn: AcceptedTurn = {
  version: 1,
  turnId: 't_1',
  tenantId: 'acme',
  sessionId: 'f'.repeat(32),
  acceptedAtMs,
  origin: 'webhook',
  agent: 'cs',
  authority: 'cs',
  channel: 'channel_a',
  sender: '4915',
  text: 'the words',
  attachments: [],
  requestHash: 'h',
  keyId: null,
};
const record: TurnRecord = {
  id: 't_1',
  status: 'done',
  origin: 'webhook',
  acceptedAt: at(0),
  startedAt: at(30),
  firstTextAt: at(800),
  endedAt: at(3000),
  attempts: 2,
  usage: { inputTokens: 1000, outputTokens: 20 },
  models: [{ model: 'a/b', calls: 2, inputTokens: 1000, outputTokens: 20, cachedInputTokens: 910, costUsd: 0.03 }],
  finishReason: 'stop',
  error: null,
  steps: [
    { kind: 'model', name: 'a/b', startedAt: at(40), durationMs: 5, isError: false, failedAttempts: 1 },
    { kind: 'tool', name: 'read', startedAt: at(50), durationMs: 5, isError: false },
    { kind: 'tool', name: 'read', startedAt: at(60), durationMs: 5, isError: true },
    { kind: 'tool', name: 'what the model made up', startedAt: at(70), durationMs: 5, isError: true },
  ],
  requestHash: 'h',
  keyId: null,
  trace: { waits: [{ reason: 'tenant_share', ms: 30 }] },
};

describe('why a turn waited', () => {
  const run = { turn, attempt: 1, startedAtMs: acceptedAtMs + 1000, wokenAtMs: acceptedAtMs + 900 };
  const earlier = { turns: [{ ...record, endedAt: at(600) }] };

  it('is its own session, then its tenant’s share, then a slot', () => {
    expect(listWaits(run, earlier)).toEqual([
      { reason: 'own_session', ms: 600 },
      { reason: 'tenant_share', ms: 300 },
      { reason: 'no_free_slot', ms: 100 },
    ]);
  });

  it('is more messages where it collects, and no share where it was woken at once', () => {
    expect(listWaits({ ...run, turn: { ...turn, collects: true } }, { turns: [] })).toEqual([
      { reason: 'debounce', ms: 900 },
      { reason: 'no_free_slot', ms: 100 },
    ]);
    expect(listWaits({ ...run, wokenAtMs: acceptedAtMs + 3 }, { turns: [] })).toEqual([{ reason: 'no_free_slot', ms: 1000 }]);
  });

  it('is known in part where clocks differ or the first wake-up is forgotten', () => {
    expect(listWaits({ ...run, startedAtMs: acceptedAtMs - 5 }, { turns: [] })).toEqual([]);
    expect(listWaits({ ...run, attempt: 2, wokenAtMs: acceptedAtMs + 90_000 }, { turns: [] })).toEqual([
      { reason: 'no_free_slot', ms: 1000 },
    ]);
  });
});

describe('the line of a turn in the log', () => {
  it('says where it came from, how it ended, why it waited, and what it called and cost, without its text', () => {
    const facts = endFacts({ turn }, record);
    expect(facts).toMatchObject({
      agent: 'cs',
      channel: 'channel_a',
      outcome: 'stop',
      waits: { tenant_share: 30 },
      modelCalls: 2,
      failedAttempts: 1,
      tools: [
        { name: 'read', calls: 2, failed: 1 },
        { name: 'unknown', calls: 1, failed: 1 },
      ],
      inputTokens: 1000,
      costUsd: 0.03,
      firstTextMs: 800,
      ms: 3000,
    });
    expect(JSON.stringify(facts)).not.toContain('made up');
  });
});
