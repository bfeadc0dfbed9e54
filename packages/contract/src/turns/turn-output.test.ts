import { describe, expect, it } from '@jest/globals';
import type { ModelUsage } from './turn.ts';
import type { TurnStep } from './session.ts';
import { viewSteps } from './turn-output.ts';

const usage: ModelUsage = { model: 'test/model', calls: 1, inputTokens: 100, outputTokens: 10, cachedInputTokens: 0, costUsd: null };
const times = { startedAtMs: Date.parse('2026-11-20T10:00:00.000Z'), durationMs: 12.4 };
const shownTimes = { startedAt: '2026-11-20T10:00:00.000Z', durationMs: 12 };
const cut: TurnStep = { kind: 'compaction', summary: null, keepFromId: null, prunedIds: ['t1.1.1'], usage: null, ...times };

describe('the view of a step', () => {
  it('shows a compaction that only cut old results as a prune that went well', () => {
    expect(viewSteps([cut])).toEqual([{ kind: 'compaction', name: 'prune', ...shownTimes, isError: false }]);
  });

  it('shows a summary with what it cost, and as failed where no model made it', () => {
    const summary = { text: 'They spoke of shoes.', messages: 4, updatedAt: '2026-11-20T10:00:00.000Z' };
    const summarised: TurnStep = { ...cut, summary, usage };
    const shown = { kind: 'compaction', name: 'summarise', ...shownTimes };
    expect(viewSteps([summarised])).toEqual([{ ...shown, isError: false, usage: { inputTokens: 100, outputTokens: 10 } }]);
    expect(viewSteps([{ ...summarised, usage: null, failed: true }])).toEqual([{ ...shown, isError: true }]);
  });

  it('shows no step that is only bookkeeping, and no negative time', () => {
    const began: TurnStep = { kind: 'intent', callId: 'c1', name: 'bash' };
    const nested = { callId: 'c1/1', parentId: 'c1', name: 'read', within: 'bash', isError: true, ...times, durationMs: -3 };
    expect(viewSteps([began, { kind: 'nested_result', ...nested }])).toEqual([
      { kind: 'tool', name: 'read', within: 'bash', ...shownTimes, durationMs: 0, isError: true },
    ]);
  });
});
