import { setTimeout as wait } from 'node:timers/promises';
import { System } from '@concierge/testing';
import type { Bench } from '../bench.ts';
import { sharedEnvironment } from '../config.ts';
import { residentBytes } from '../process-figures.ts';
import { pidOfRedis } from '../redis-pid.ts';
import { absoluteRow, type Row } from '../row.ts';

const SETTLE_MS = 5000;
const MEBIBYTE = 1024 * 1024;

/** Everything of one installation, started and left alone. */
export async function measureIdleMemory(bench: Bench): Promise<Row[]> {
  await using system = await System.start({
    modelUrl: bench.model.url,
    crons: 1,
    uis: 1,
    env: { ...sharedEnvironment, NODE_ENV: 'production' },
  });
  await wait(SETTLE_MS);
  const parts = new Map(system.services.map(({ name, pid = 0 }) => [name, residentBytes(pid)]));
  parts.set('redis', residentBytes(await pidOfRedis(system.redis)));
  const rows = [...parts].map(([name, bytes]) =>
    absoluteRow({ measure: `idle memory of ${name}`, unit: 'MiB', product: bytes / MEBIBYTE }, null),
  );
  const all = [...parts.values()].reduce((sum, bytes) => sum + bytes, 0) / MEBIBYTE;
  return [...rows, absoluteRow({ measure: 'idle memory, together', unit: 'MiB', product: all }, { atMost: 450 })];
}
