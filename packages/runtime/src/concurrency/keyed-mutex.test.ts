import { describe, expect, it } from '@jest/globals';
import { KeyedMutex } from './tasks.ts';

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
