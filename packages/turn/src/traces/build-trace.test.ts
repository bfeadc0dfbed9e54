import { describe, expect, it } from '@jest/globals';
import { TurnTrace, writeTrace, type DeliveryStep, type OutboundMessage, type TurnView } from '@concierge/contract';
import { Delivery } from '@concierge/tenant';
import { buildTrace } from './build-trace.ts';

const at = (ms: number): string => new Date(Date.parse('2026-11-26T10:00:00.000Z') + ms).toISOString();

const turn: TurnView = {
  id: 't_1',
  contact_id: 'f'.repeat(32),
  agent: 'cs',
  channel: 'channel_a',
  origin: 'webhook',
  status: 'done',
  acceptedAt: at(4),
  startedAt: at(34),
  firstTextAt: null,
  endedAt: at(3000),
  attempts: 1,
  usage: { inputTokens: 1000, outputTokens: 20 },
  costUsd: 0.0312,
  finishReason: 'stop',
  error: null,
  input: 'the words of the customer',
  steps: [
    {
      kind: 'model',
      name: 'other/model',
      startedAt: at(90),
      durationMs: 2800,
      isError: false,
      usage: { inputTokens: 1000, outputTokens: 20 },
      cachedInputTokens: 910,
      costUsd: 0.0312,
      firstTextMs: 31,
      failedAttempts: 2,
    },
    { kind: 'tool', name: 'read', within: 'bash', startedAt: at(2900), durationMs: 36, isError: true },
  ],
};
const facts = {
  receivedAt: at(0),
  waits: [{ reason: 'own_session', ms: 10 } as const, { reason: 'no_free_slot', ms: 20 } as const],
  prompt: { at: at(35), ms: 54, parts: [{ name: 'SOUL.md', tokens: 312 }] },
  model: 'first/model',
};
const message: OutboundMessage = {
  version: 1,
  id: `m_${'0'.repeat(32)}`,
  kind: 'answer',
  channel: 'channel_a',
  to: '4915',
  sessionId: turn.contact_id,
  text: 'the words of the agent',
  agent: 'cs',
  turnId: turn.id,
  callId: 'answer',
  acceptedAt: at(3001),
  expiresAt: at(90_000),
};
const sentSteps: DeliveryStep[] = [
  {
    kind: 'parts',
    at: at(3002),
    parts: [
      { text: 'the words', plain: 'the words' },
      { text: 'of the agent', plain: 'of the agent' },
    ],
  },
  { kind: 'result', at: at(3310), begunAt: at(3010), part: 0, try: 1, outcome: 'retry', retryAt: at(4000) },
  { kind: 'result', at: at(4300), begunAt: at(4010), part: 0, try: 2, outcome: 'sent' },
  { kind: 'receipt', at: at(5000), part: 0, state: 'delivered' },
  { kind: 'receipt', at: at(6000), part: 0, state: 'read' },
];

describe('the trace of a turn', () => {
  it('goes from the arrival of its request to the receipts of what it sent, without a word of it', () => {
    const trace = buildTrace({ turn, facts, deliveries: [new Delivery(message, sentSteps)] });
    expect(TurnTrace.parse(trace)).toEqual(trace);
    expect(trace.spans).toMatchObject([
      { kind: 'received', name: 'webhook', at: at(0), durationMs: 4 },
      { kind: 'waited', name: 'own_session', at: at(4), durationMs: 10 },
      { kind: 'waited', name: 'no_free_slot', at: at(14), durationMs: 20 },
      { kind: 'prompt', durationMs: 54, parts: [{ name: 'SOUL.md', tokens: 312 }] },
      { kind: 'model', name: 'other/model', fallbackFor: 'first/model', failedAttempts: 2, cachedInputTokens: 910, firstTextMs: 31 },
      { kind: 'tool', name: 'read', within: 'bash', isError: true },
      { kind: 'saved', at: at(3000), durationMs: null },
      { kind: 'sent', name: 'channel_a', part: 1, tries: 1, isError: true },
      { kind: 'sent', part: 1, tries: 2, durationMs: 290, isError: false },
      { kind: 'delivered', part: 1 },
      { kind: 'read', part: 1 },
    ]);
    expect(JSON.stringify(trace)).not.toContain('words');
    const text = writeTrace(trace);
    expect(text).toContain('1000 → 20 tokens (cached 91 %)  $0.0312  first text 31 ms  after 2 failed  in place of first/model');
    expect(text).toContain('└ tool read  within bash  failed');
    expect(text).toContain('SOUL.md 312');
  });

  it('of a record that has no facts has the steps, and of a turn that waits what it waits for', () => {
    const old = buildTrace({ turn, facts: undefined, deliveries: [] });
    expect(old.spans.map(({ kind }) => kind)).toEqual(['received', 'model', 'tool', 'saved']);
    const waitsFor = { reason: 'tenant_share', why: 'It waits.', startsWhen: 'Another ends.', behind: null } as const;
    const { steps: _steps, ...bare } = turn;
    const waiting = buildTrace({ turn: { ...bare, status: 'waiting', endedAt: null, waitsFor }, facts: undefined, deliveries: [] });
    expect(waiting.spans).toMatchObject([{ kind: 'received' }, { kind: 'waited', name: 'tenant_share', durationMs: null }]);
    expect(writeTrace(waiting)).toContain('waits: It waits. Another ends.');
  });
});
