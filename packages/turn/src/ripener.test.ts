import { describe, expect, it } from '@jest/globals';
import { createLog } from '@concierge/runtime';
import { eventually } from '@concierge/testing';
import type { Ring, Ripened } from './lanes.ts';
import { Ripener } from './ripener.ts';

const log = createLog({ service: 'test', level: 'silent' });
const ring: Ring = { accountId: 'acme', sessionId: 's', turnId: 't', backlog: 1, at: 1, depth: 0 };

function ripenerOf(...answers: (Ripened | Error)[]): { ripener: Ripener; rung: Ring[]; asked: () => number } {
  const rung: Ring[] = [];
  let asked = 0;
  const ripener = new Ripener({
    lanes: {
      ripen: async () => {
        const answer = answers[asked] ?? { rings: [], nextInMs: null };
        asked += 1;
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      },
    },
    doorbells: { ring: async (rings) => Promise.resolve(void rung.push(...rings)) },
    log,
  });
  return { ripener, rung, asked: () => asked };
}

describe('the timer of a process', () => {
  it('asks again when the time of a lane has moved meanwhile', async () => {
    const { ripener, rung } = ripenerOf({ rings: [], nextInMs: 0 }, { rings: [], nextInMs: 1 }, { rings: [ring], nextInMs: null });
    ripener.expect(1);
    await eventually(() => rung.length === 1);
    expect(rung).toEqual([ring]);
  });

  it('is set to the nearest of all times', async () => {
    const { ripener, rung, asked } = ripenerOf({ rings: [ring], nextInMs: null });
    ripener.expect(3_600_000);
    ripener.expect(1);
    ripener.expect(3_600_000);
    await eventually(() => rung.length === 1);
    expect(asked()).toBe(1);
    await ripener.stop();
  });

  it('is set by the next message after Redis has failed', async () => {
    const { ripener, rung, asked } = ripenerOf(new Error('gone'), { rings: [ring], nextInMs: null });
    ripener.expect(1);
    await eventually(() => asked() === 1);
    ripener.expect(1);
    await eventually(() => rung.length === 1);
    expect(rung).toEqual([ring]);
  });

  it('is not set any more by a process that stops', async () => {
    const { ripener, asked } = ripenerOf();
    ripener.expect(0);
    await ripener.stop();
    ripener.expect(0);
    const other = ripenerOf();
    other.ripener.expect(1);
    await eventually(() => other.asked() === 1);
    expect(asked()).toBe(0);
  });
});
