import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { SqliteBackend, storeOver } from '@concierge/index';
import { silentLog } from '@concierge/testing';
import { Tenants } from '../src/tenants.ts';
import { temporaryFolder } from './support.ts';

const TENANTS = 100;
const MAX_BYTES_EACH = 64 * 1024;

/** Heap and buffers that are still reachable. */
function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

it('holds at most 64 KiB for a tenant that is open and idle', async () => {
  await using folder = await temporaryFolder();
  const index = storeOver(new SqliteBackend({ folder: `${folder.path}/index`, bootId: 'b', log: silentLog }));
  const options = { dataDir: folder.path, index, keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40), log: silentLog };
  const ids = Array.from({ length: TENANTS }, (_, number) => `tenant-${String(number)}`);
  const maker = new Tenants(options);
  for (const id of ids) await maker.create(id);
  const tenants = new Tenants(options);
  const look = async (id: string): Promise<void> => {
    const scope = await tenants.open(id);
    await scope.settings();
    await scope.skills.list();
    await scope.agents.scan();
    await scope.schedules.list();
  };
  // What is loaded and compiled once, at the first tenant, is no tenant's.
  await maker.create('first');
  await look('first');
  const before = usedBytes();
  for (const id of ids) await look(id);
  expect((usedBytes() - before) / TENANTS).toBeLessThan(MAX_BYTES_EACH);
  await index.close();
});
