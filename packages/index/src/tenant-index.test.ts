import { describe, expect, it } from '@jest/globals';
import { AppError } from '@concierge/contract';
import { BatchedUpserts } from './tenant-index.ts';
import type { SessionPut } from './types.ts';

const at = '2026-03-01T10:00:00.000Z';
const put = (id: string): SessionPut => ({
  session: { id, agent: 'admin', channel: 'web', revision: 1, createdAt: at, updatedAt: at, title: '', messageCount: 0, turns: [] },
});
const joinIds = (puts: readonly SessionPut[]) => puts.map(({ session }) => session.id).join('');

describe('BatchedUpserts', () => {
  it('writes together what comes together, and what comes while it writes', async () => {
    const groups: string[] = [];
    const late: Promise<void>[] = [];
    const puts = new BatchedUpserts(async (group) => {
      groups.push(joinIds(group));
      if (groups.length === 1) late.push(puts.put(put('d')), puts.put(put('e')));
      await Promise.resolve();
    });
    await Promise.all(['a', 'b', 'c'].map(async (id) => puts.put(put(id))));
    await Promise.all(late);
    await puts.put(put('f'));
    expect(groups).toEqual(['abc', 'de', 'f']);
  });

  it('fails the one that cannot be written, and not those beside it', async () => {
    const puts = new BatchedUpserts(async (group) =>
      joinIds(group).includes('b') ? Promise.reject(new Error('b is odd')) : Promise.resolve(),
    );
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map(async (id) => puts.put(put(id))));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('asks a database that cannot be reached once for the whole group', async () => {
    let asked = 0;
    const puts = new BatchedUpserts(async () => {
      asked += 1;
      return Promise.reject(new AppError('overloaded'));
    });
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map(async (id) => puts.put(put(id))));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(asked).toBe(1);
  });
});
