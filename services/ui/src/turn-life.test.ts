import { describe, expect, it } from '@jest/globals';
import type { TurnView } from '@concierge/contract';
import { listSpans, measureTurn, writeTurn } from './turn-life.ts';

const turn: TurnView = {
  id: 't_1',
  contact_id: 'f'.repeat(32),
  agent: 'admin',
  channel: 'web',
  origin: 'api',
  status: 'failed',
  acceptedAt: '2026-11-26T10:00:00.000Z',
  startedAt: '2026-11-26T10:00:00.028Z',
  firstTextAt: null,
  endedAt: '2026-11-26T10:00:03.860Z',
  attempts: 1,
  usage: { inputTokens: 26_421, outputTokens: 153 },
  costUsd: 0.0312,
  finishReason: null,
  error: { code: 'provider_error', message: 'Down.' },
  steps: [
    {
      kind: 'model',
      name: 'openai/gpt-5-mini',
      startedAt: '2026-11-26T10:00:00.082Z',
      durationMs: 74,
      isError: false,
      usage: { inputTokens: 26_421, outputTokens: 153 },
    },
    { kind: 'tool', name: 'read', within: 'bash', startedAt: '2026-11-26T10:00:00.156Z', durationMs: 36, isError: true },
  ],
};

describe('the life of a turn', () => {
  it('is waiting, the prompt and each step, in milliseconds since its acceptance', () => {
    expect(listSpans(turn, 0)).toMatchObject([
      { kind: 'waited', startMs: 0, durationMs: 28 },
      { kind: 'prepared', startMs: 28, durationMs: 54 },
      { kind: 'model', name: 'openai/gpt-5-mini', startMs: 82, durationMs: 74, tokens: { input: 26_421, output: 153 } },
      { kind: 'tool', name: 'read', within: 'bash', startMs: 156, isError: true },
      { kind: 'rest', startMs: 192, durationMs: 3668 },
    ]);
    expect(measureTurn(turn, 0)).toBe(3860);
  });

  it('is waiting alone for a turn that has not begun', () => {
    const waiting = { ...turn, startedAt: null, endedAt: null, steps: [] };
    const now = Date.parse(turn.acceptedAt) + 5000;
    expect(listSpans(waiting, now)).toMatchObject([{ kind: 'waited', durationMs: 5000 }]);
    expect(measureTurn(waiting, now)).toBe(5000);
  });

  it('is written as text, with what failed', () => {
    const text = writeTurn(turn, listSpans(turn, 0));
    expect(text).toContain('error provider_error: Down.');
    expect(text).toContain('$0.0312');
    expect(text).toMatch(/156 ms +36 ms +tool read \(within bash\) {2}failed/u);
  });
});
