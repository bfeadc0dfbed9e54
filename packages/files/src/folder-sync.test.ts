import { describe, expect, it } from '@jest/globals';
import { SharedRun } from './folder-sync.ts';

function steps(): { readonly task: () => Promise<number>; readonly finish: (() => void)[]; readonly fail: ((error: Error) => void)[] } {
  const finish: (() => void)[] = [];
  const fail: ((error: Error) => void)[] = [];
  const task = async (): Promise<number> => {
    const number = finish.length + 1;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    finish.push(resolve);
    fail.push(reject);
    await promise;
    return number;
  };
  return { task, finish, fail };
}

const turnOfTheLoop = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a shared run', () => {
  it('gives all callers that came while one was in flight the next one', async () => {
    const { task, finish } = steps();
    const shared = new SharedRun(task);
    const first = shared.run();
    const late = [shared.run(), shared.run(), shared.run()];
    finish[0]?.();
    expect(await first).toBe(1);
    await turnOfTheLoop();
    const later = shared.run();
    finish[1]?.();
    expect(await Promise.all(late)).toEqual([2, 2, 2]);
    await turnOfTheLoop();
    finish[2]?.();
    expect(await later).toBe(3);
    await turnOfTheLoop();
    expect(shared.isIdle).toBe(true);
  });

  it('fails only for those whose run failed', async () => {
    const { task, finish, fail } = steps();
    const shared = new SharedRun(task);
    const first = shared.run();
    const second = shared.run();
    fail[0]?.(new Error('disk'));
    await expect(first).rejects.toThrow('disk');
    await turnOfTheLoop();
    finish[1]?.();
    expect(await second).toBe(2);
  });
});
