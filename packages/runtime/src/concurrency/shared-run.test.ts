import { describe, expect, it } from '@jest/globals';
import { KeyedMutex } from './keyed-mutex.ts';
import { SharedRun } from './shared-run.ts';

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
  it('gives everybody who came while one was in flight the next one', async () => {
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

describe('a keyed mutex', () => {
  it('runs tasks of one key one after another, others at once, and forgets them', async () => {
    const mutex = new KeyedMutex();
    const seen: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = mutex.run('a', async () => {
      await promise;
      seen.push('a1');
      throw new Error('a1 failed');
    });
    const second = mutex.run('a', async () => {
      seen.push('a2');
      return Promise.resolve('second');
    });
    await mutex.run('b', async () => {
      seen.push('b');
      return Promise.resolve();
    });
    expect(seen).toEqual(['b']);
    resolve();
    await expect(first).rejects.toThrow('a1 failed');
    expect(await second).toBe('second');
    expect(seen).toEqual(['b', 'a1', 'a2']);
  });
});
