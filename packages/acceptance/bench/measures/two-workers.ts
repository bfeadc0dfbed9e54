import type { Bench } from '../bench.ts';
import { startProduct } from '../contestants.ts';
import { ratioRow, type Row } from '../row.ts';

/**
 * Turns one worker runs at once here: few enough for the cores to last, so that what is compared is the number of
 * workers.
 */
const CONCURRENCY_EACH = 48;
/** More turns wait than two workers take. */
const LOAD = 160;
const MEASURE_MS = 5000;

export async function measureTwoWorkers(bench: Bench): Promise<Row[]> {
  const one = await rateOf(bench, 1);
  const two = await rateOf(bench, 2);
  const measure = `real pace, 2 workers of ${String(CONCURRENCY_EACH)}`;
  return [ratioRow({ measure, unit: 'turns/s', product: two }, { name: '1 worker', value: one }, { atLeast: 1.8 })];
}

async function rateOf(bench: Bench, workers: number): Promise<number> {
  await using product = await startProduct(bench.model, { workers, env: { WORKER_CONCURRENCY: String(CONCURRENCY_EACH) } });
  return (await bench.paced(product, { concurrency: LOAD, measureMs: MEASURE_MS, warmUpTurns: LOAD * 2 })).rate;
}
