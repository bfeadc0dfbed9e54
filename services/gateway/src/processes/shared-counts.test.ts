import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { BodyBudget } from '../http/request-body.ts';
import { CountExchange, SharedCounts } from './shared-counts.ts';

interface Started {
  readonly exchange: CountExchange;
  readonly processes: readonly SharedCounts[];
  readonly join: () => Promise<SharedCounts>;
}

/** So many processes of one gateway; what is said between them arrives later, in order. */
async function startProcesses(count: number): Promise<Started> {
  const processes: SharedCounts[] = [];
  const exchange = new CountExchange((id, others) => setImmediate(() => processes[id]?.hearOthers(others)));
  const join = async (): Promise<SharedCounts> => {
    const id = processes.length;
    const own = new SharedCounts(({ counts, report }) =>
      setImmediate(() => {
        exchange.count(id, counts);
        setImmediate(() => own.hearCounted(report));
      }),
    );
    processes.push(own);
    await own.agree();
    return own;
  };
  for (let started = 0; started < count; started += 1) await join();
  return { exchange, processes, join };
}

describe('shared counts', () => {
  it('are those of all processes, soon after one has counted', async () => {
    const { processes } = await startProcesses(3);
    for (const [id, counts] of processes.entries()) counts.add('streams/k', id + 1);
    expect(await eventually(() => processes.every((counts) => counts.total('streams/k') === 6))).toBe(true);
    processes[2]?.add('streams/k', -3);
    expect(await eventually(() => processes.every((counts) => counts.total('streams/k') === 3))).toBe(true);
  });

  it('of a process that ended are gone', async () => {
    const { exchange, processes } = await startProcesses(2);
    processes[0]?.add('connections', 5);
    await eventually(() => processes[1]?.total('connections') === 5);
    exchange.forget(0);
    expect(await eventually(() => processes[1]?.total('connections') === 0)).toBe(true);
  });

  it('are known to a process that begins later, once it has agreed', async () => {
    const { processes, join } = await startProcesses(2);
    processes[1]?.add('connections', 7);
    await processes[1]?.agree();
    const late = await join();
    expect(late.total('connections')).toBe(7);
  });

  it('of a primary that does not answer leave open what is admitted', async () => {
    await expect(new SharedCounts(() => undefined).agree()).rejects.toMatchObject({ code: 'overloaded' });
  });
});

describe('a process that agrees', () => {
  it('has agreed when the primary answered while it stood still', async () => {
    const counts: SharedCounts = new SharedCounts(({ report }) => setImmediate(() => counts.hearCounted(report)));
    const agreed = counts.agree(100);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    await expect(agreed).resolves.toBeUndefined();
  });
});

describe('the room for large bodies', () => {
  it('is one for all processes: of two that take the last of it at once, not both get it', async () => {
    const { processes } = await startProcesses(2);
    const budgets = processes.map((counts) => new BodyBudget({ counts, share: (whole) => whole / 2 }));
    const half = limits.bodiesOfPeerMaxBytes / 2 + 1;
    const rooms = budgets.map((budget) => budget.reserve('peer', half));
    const outcomes = await Promise.allSettled(rooms.map(async (room) => room.agree()));
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ code: 'overloaded' }) });
    for (const room of rooms) room[Symbol.dispose]();
    await Promise.all(processes.map(async (counts) => counts.agree()));
    using again = budgets[0]?.reserve('peer', limits.bodiesOfPeerMaxBytes);
    await expect(again?.agree()).resolves.toBeUndefined();
    expect(() => budgets[1]?.reserve('peer', half)).toThrow(expect.objectContaining({ code: 'overloaded' }));
  });

  it('is shared out where bodies are small', async () => {
    const { processes } = await startProcesses(2);
    const [budget] = processes.map((counts) => new BodyBudget({ counts, share: (whole) => whole / 2 }));
    for (let held = 0; held < limits.bodiesOfPeerMaxBytes / 2; held += limits.jsonBodyMaxBytes)
      budget?.reserve('peer', limits.jsonBodyMaxBytes);
    expect(() => budget?.reserve('peer', limits.jsonBodyMaxBytes)).toThrow(expect.objectContaining({ code: 'overloaded' }));
  });
});
