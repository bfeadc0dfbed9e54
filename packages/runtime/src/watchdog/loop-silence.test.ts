import { describe, expect, it } from '@jest/globals';
import { LoopSilence, type ThreadTimes } from './loop-silence.ts';

const LOOK_MS = 500;

/** What a main thread does between two looks. */
interface Work {
  readonly ranMs: number;
  readonly queuedMs: number;
  readonly isRunnable?: boolean;
}

/** When a silent thread that does such work counts as hung, in seconds; undefined: not within ten minutes. */
function findHungSeconds(work: (look: number) => Work | undefined): number | undefined {
  const silence = new LoopSilence();
  let times: ThreadTimes = { ranMs: 3000, queuedMs: 7000, isRunnable: true };
  silence.noteTick(times);
  for (let look = 1; look <= 1200; look += 1) {
    const done = work(look);
    if (done !== undefined) {
      const { ranMs, queuedMs, isRunnable = true } = done;
      times = { ranMs: times.ranMs + ranMs, queuedMs: times.queuedMs + queuedMs, isRunnable };
    }
    silence.noteSilence(LOOK_MS, done === undefined ? undefined : times);
    if (silence.isHung) return (look * LOOK_MS) / 1000;
  }
  return undefined;
}

describe('a main thread whose event loop does not turn', () => {
  it('hangs after ten seconds when it works all the time', () => {
    expect(findHungSeconds(() => ({ ranMs: LOOK_MS, queuedMs: 0 }))).toBe(10);
  });

  it('hangs as soon when it shares its processor with four others', () => {
    expect(findHungSeconds(() => ({ ranMs: LOOK_MS / 5, queuedMs: (LOOK_MS * 4) / 5 }))).toBe(10);
  });

  it('hangs as soon when it is blocked, on a disk or a lock', () => {
    expect(findHungSeconds(() => ({ ranMs: 0, queuedMs: 0, isRunnable: false }))).toBe(10);
  });

  it('hangs as soon where the system does not say what it does', () => {
    expect(findHungSeconds(() => undefined)).toBe(10);
  });

  it('does not hang while it waits for a processor, and hangs when it has worked for two seconds', () => {
    expect(findHungSeconds(() => ({ ranMs: 5, queuedMs: LOOK_MS - 5 }))).toBe(200);
  });

  it('does not hang while it has no processor at all', () => {
    expect(findHungSeconds(() => ({ ranMs: 0, queuedMs: 0 }))).toBeUndefined();
  });

  it('is not excused twice for one wait', () => {
    // The system adds the wait of 15 s when it ends; then the thread works.
    const work = (look: number): Work => {
      if (look <= 30) return { ranMs: 0, queuedMs: 0 };
      return { ranMs: LOOK_MS, queuedMs: look === 31 ? 30 * LOOK_MS : 0 };
    };
    expect(findHungSeconds(work)).toBe(17);
  });

  it('is silent anew after a tick', () => {
    const silence = new LoopSilence();
    silence.noteTick(undefined);
    silence.noteSilence(9500, undefined);
    silence.noteTick(undefined);
    silence.noteSilence(9500, undefined);
    expect([silence.silentMs, silence.isHung]).toEqual([9500, false]);
  });
});
