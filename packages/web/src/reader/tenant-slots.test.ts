import { expect, it } from '@jest/globals';
import { gate } from '@concierge/testing';
import { TenantSlots } from './tenant-slots.ts';

it('a tenant that brings more than there is room for keeps nobody else waiting, and gets all of it done', async () => {
  const slots = new TenantSlots({ count: 4, perTenant: 3 });
  const disk = gate();
  const done: string[] = [];
  const bring = async (accountId: string, until: Promise<unknown>): Promise<void> => {
    await slots.run(accountId, async () => {
      await until;
      done.push(accountId);
    });
  };
  const loud = Array.from({ length: 50 }, async () => bring('loud', disk.opened));
  await bring('quiet', Promise.resolve());
  expect(done).toEqual(['quiet']);
  disk.open();
  await Promise.all(loud);
  expect(done).toHaveLength(51);
});
