import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { limits, type TurnEvent } from '@concierge/contract';
import { CallProgress } from './call-progress.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function following(): { readonly progress: CallProgress; readonly deltas: () => string[] } {
  const events: TurnEvent[] = [];
  const progress = new CallProgress({ id: 'c1', name: 'bash' }, (event) => events.push(event));
  const deltas = (): string[] =>
    events.map((event) => {
      if (event.type !== 'tool_call_progress' || event.data.id !== 'c1') throw new Error(`not of this call: ${event.type}`);
      return event.data.delta;
    });
  return { progress, deltas };
}

describe('what a call reports while it runs', () => {
  it('is not emitted for a short call', () => {
    const { progress, deltas } = following();
    progress.hear('quick');
    jest.advanceTimersByTime(limits.toolProgressAfterMs - 1);
    progress[Symbol.dispose]();
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toEqual([]);
  });

  it('is emitted when the call takes longer, from its beginning, some of it at a time', () => {
    const { progress, deltas } = following();
    progress.hear('one ');
    progress.hear('two ');
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    expect(deltas()).toEqual(['one two ']);
    progress.hear('three ');
    progress.hear('four');
    jest.advanceTimersByTime(1000);
    expect(deltas()).toEqual(['one two ', 'three four']);
  });

  it('is never emitted after the call has ended', () => {
    const { progress, deltas } = following();
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    progress.hear('too late');
    progress[Symbol.dispose]();
    progress.hear('later still');
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toEqual([]);
  });

  it('ends at its limit, with a note that there is more, and never in half a character', () => {
    const { progress, deltas } = following();
    progress.hear('ä'.repeat(limits.toolProgressMaxBytes));
    jest.advanceTimersByTime(limits.toolProgressAfterMs);
    progress.hear('more');
    jest.advanceTimersByTime(60_000);
    expect(deltas()).toHaveLength(1);
    expect(deltas()[0]).toBe(`${'ä'.repeat(limits.toolProgressMaxBytes / 2)}\n[there is more: it is in the result]\n`);
  });
});
