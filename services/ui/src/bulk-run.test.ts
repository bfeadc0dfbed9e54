import { describe, expect, it } from '@jest/globals';
import { runInSteps, type BulkStep } from './bulk-run.ts';

const steps: readonly BulkStep[] = [
  { count: 2, tenants: [{ tenantId: 'a', count: 2 }], skipped: [{ reason: 'gone', count: 1 }], nextCursor: '1' },
  { count: 0, tenants: [], skipped: [], nextCursor: '2' },
  {
    count: 4,
    tenants: [
      { tenantId: 'a', count: 1 },
      { tenantId: 'b', count: 3 },
    ],
    skipped: [
      { reason: 'gone', count: 1 },
      { reason: 'retried', count: 5 },
    ],
    nextCursor: null,
  },
];

const take = async (cursor: string | undefined): Promise<BulkStep> => {
  const step = steps[Number(cursor ?? 0)];
  if (step === undefined) throw new Error('no such step');
  return Promise.resolve(step);
};

describe('runInSteps', () => {
  it('goes from cursor to cursor to the end, and adds up', async () => {
    const counts: number[] = [];
    let pauses = 0;
    const pause = async (): Promise<void> => {
      pauses += 1;
      return Promise.resolve();
    };
    const onTotals = ({ count }: { readonly count: number }): void => void counts.push(count);
    const totals = await runInSteps(take, { signal: new AbortController().signal, pause, onTotals });
    expect(totals).toEqual({
      count: 6,
      tenants: [
        { tenantId: 'a', count: 3 },
        { tenantId: 'b', count: 3 },
      ],
      skipped: [
        { reason: 'retried', count: 5 },
        { reason: 'gone', count: 2 },
      ],
    });
    expect([counts, pauses]).toEqual([[2, 2, 6], 2]);
  });

  it('stops between two steps, and keeps what was done', async () => {
    const stop = new AbortController();
    const pause = async (): Promise<void> => {
      stop.abort();
      return Promise.resolve();
    };
    expect(await runInSteps(take, { signal: stop.signal, pause })).toMatchObject({ count: 2 });
  });

  it('fails with the step that fails', async () => {
    const refuse = async (): Promise<BulkStep> => Promise.reject(new Error('no'));
    await expect(runInSteps(refuse, { signal: new AbortController().signal })).rejects.toThrow('no');
  });
});
