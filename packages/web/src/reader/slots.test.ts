import { describe, expect, it } from '@jest/globals';
import { Slots } from './slots.ts';

describe('Slots', () => {
  it('never runs more at once than there is room for, and runs all, in order', async () => {
    const slots = new Slots(2);
    const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
    const started: number[] = [];
    let running = 0;
    let most = 0;
    const tasks = gates.map(async ({ promise }, index) =>
      slots.run(async () => {
        started.push(index);
        running += 1;
        most = Math.max(most, running);
        await promise;
        running -= 1;
      }),
    );
    for (const { resolve } of gates) resolve();
    await Promise.all(tasks);
    expect(most).toBe(2);
    expect(started).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('gives the room of a task that failed to the next', async () => {
    const slots = new Slots(1);
    const failing = slots.run(async () => Promise.reject(new Error('no')));
    const next = slots.run(async () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });
});
