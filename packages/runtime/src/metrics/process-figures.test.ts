import { describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { connectRedis } from '../redis.ts';
import { openProcessFigures } from './metrics.ts';
import { countIndexError } from './process-counts.ts';

async function readFigure(registry: Registry, name: string, labels = ''): Promise<number> {
  const line = (await registry.metrics()).split('\n').find((text) => text.startsWith(`${name}${labels} `));
  return Number(line?.split(' ').at(-1));
}

describe('the figures that every process has', () => {
  it('count a Redis that cannot be reached, and commands that fail for it', async () => {
    const registry = new Registry();
    openProcessFigures(registry, { dataDir: '.' });
    expect(await readFigure(registry, 'concierge_redis_errors_total', '{kind="connection"}')).toBe(0);
    const redis = connectRedis({ url: 'redis://127.0.0.1:1', role: 'producer', log: pino({ level: 'silent' }) });
    try {
      await new Promise((resolve) => redis.once('close', resolve));
      await expect(redis.ping()).rejects.toThrow(/./u);
    } finally {
      redis.disconnect();
    }
    expect(await readFigure(registry, 'concierge_redis_errors_total', '{kind="connection"}')).toBeGreaterThan(0);
    expect(await readFigure(registry, 'concierge_redis_errors_total', '{kind="command"}')).toBeGreaterThan(0);
  });

  it('count failures of the index, whoever has them', async () => {
    const registry = new Registry();
    openProcessFigures(registry, { dataDir: '.' });
    const before = await readFigure(registry, 'concierge_index_errors_total');
    countIndexError();
    expect(await readFigure(registry, 'concierge_index_errors_total')).toBe(before + 1);
  });

  it('show how long the event loop stood still', async () => {
    const registry = new Registry();
    openProcessFigures(registry, { dataDir: '.', readStallMs: () => 2500 });
    expect(await readFigure(registry, 'concierge_event_loop_stall_seconds')).toBe(2.5);
  });
});
