import { describe, expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { eventually } from '@concierge/testing';
import type { DueLanes } from './lanes.ts';
import type { Wakeup } from './wakeup-queue.ts';
import { DebounceTimer } from './debounce-timer.ts';

const log = createLog({ service: 'test', level: 'silent' });
const wake: Wakeup = { tenantId: 'acme', sessionId: 's', turnId: 't', backlog: 1, at: 1, depth: 0 };

function toDebounceTimer(...answers: (DueLanes | Error)[]): { debounceTimer: DebounceTimer; woken: Wakeup[]; asked: () => number } {
  const woken: Wakeup[] = [];
  let asked = 0;
  const debounceTimer = new DebounceTimer({
    lanes: {
      findDue: async () => {
        const answer = answers[asked] ?? { wakeups: [], nextInMs: null };
        asked += 1;
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      },
    },
    wakeupQueue: { wake: async (wakeups) => Promise.resolve(void woken.push(...wakeups)) },
    log,
  });
  return { debounceTimer, woken, asked: () => asked };
}

describe('the timer of a process', () => {
  it('asks again when the time of a lane has moved meanwhile', async () => {
    const { debounceTimer, woken } = toDebounceTimer(
      { wakeups: [], nextInMs: 0 },
      { wakeups: [], nextInMs: 1 },
      { wakeups: [wake], nextInMs: null },
    );
    debounceTimer.expect(1);
    await eventually(() => woken.length === 1);
    expect(woken).toEqual([wake]);
  });

  it('is set to the nearest of all times', async () => {
    const { debounceTimer, woken, asked } = toDebounceTimer({ wakeups: [wake], nextInMs: null });
    debounceTimer.expect(3_600_000);
    debounceTimer.expect(1);
    debounceTimer.expect(3_600_000);
    await eventually(() => woken.length === 1);
    expect(asked()).toBe(1);
    await debounceTimer.stop();
  });

  it('is set by the next message after Redis has failed', async () => {
    const { debounceTimer, woken, asked } = toDebounceTimer(new Error('gone'), { wakeups: [wake], nextInMs: null });
    debounceTimer.expect(1);
    await eventually(() => asked() === 1);
    debounceTimer.expect(1);
    await eventually(() => woken.length === 1);
    expect(woken).toEqual([wake]);
  });

  it('is not set any more by a process that stops', async () => {
    const { debounceTimer, asked } = toDebounceTimer();
    debounceTimer.expect(0);
    await debounceTimer.stop();
    debounceTimer.expect(0);
    const other = toDebounceTimer();
    other.debounceTimer.expect(1);
    await eventually(() => other.asked() === 1);
    expect(asked()).toBe(0);
  });
});
