import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { gate } from '@concierge/testing';
import { answerDeadline, KeyedSlots, Slots, TenantSlots } from './tasks.ts';

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

  it('refuses what is beyond its room, and has room again when one is through', async () => {
    const slots = new Slots(2);
    const disk = gate();
    const waiting = slots.run(async () => disk.opened);
    const taken = slots.tryTake();
    expect(taken).toBeDefined();
    expect(slots.tryTake()).toBeUndefined();
    taken?.[Symbol.dispose]();
    using again = slots.tryTake();
    expect(again).toBeDefined();
    disk.open();
    await waiting;
    using third = slots.tryTake();
    expect(third).toBeDefined();
    expect(slots.tryTake()).toBeUndefined();
  });
});

describe('KeyedSlots', () => {
  it('run tasks of one key one after another, and those of another key beside them', async () => {
    const slots = new KeyedSlots(1);
    const disk = gate();
    const order: string[] = [];
    const first = slots.run('a', async () => {
      await disk.opened;
      order.push('first of a');
    });
    const second = slots.run('a', async () => {
      order.push('second of a');
      return Promise.resolve();
    });
    await slots.run('b', async () => {
      order.push('b');
      return Promise.resolve();
    });
    disk.open();
    await Promise.all([first, second]);
    expect(order).toEqual(['b', 'first of a', 'second of a']);
  });
});

describe('TenantSlots', () => {
  it('a tenant with more tasks than there is room for blocks no other tenant, and gets all of them done', async () => {
    const slots = new TenantSlots({ count: 4, perTenant: 3 });
    const disk = gate();
    const done: string[] = [];
    const bring = async (tenantId: string, until: Promise<unknown>): Promise<void> => {
      await slots.run(tenantId, async () => {
        await until;
        done.push(tenantId);
      });
    };
    const loud = Array.from({ length: 50 }, async () => bring('loud', disk.opened));
    await bring('quiet', Promise.resolve());
    expect(done).toEqual(['quiet']);
    disk.open();
    await Promise.all(loud);
    expect(done).toHaveLength(51);
  });
});

describe('answerDeadline', () => {
  it('does not pass while this process stands still: what has arrived meanwhile is read first', async () => {
    const deadline = answerDeadline(300);
    // Two rounds of the event loop: timers come between them.
    const isOver = new Promise<boolean>((resolve) => setImmediate(() => setImmediate(() => resolve(deadline.aborted))));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    expect(await isOver).toBe(false);
    await once(deadline, 'abort');
    expect(deadline.reason).toMatchObject({ name: 'TimeoutError' });
  });
});
