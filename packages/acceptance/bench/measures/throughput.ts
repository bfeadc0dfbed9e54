import { together, type Bench } from '../bench.ts';
import type { MeasuredLoad } from '../load/load-driver.ts';
import { ratioRow, type Bound, type Row } from '../row.ts';
import { startProduct } from '../contestants.ts';

/** Bounds as shares of the durable pipeline; null: shown, without a target. */
const bounds = new Map<number, Bound | null>([
  [1, null],
  [16, null],
  [64, { atLeast: 0.6 }],
  [256, { atLeast: 0.6 }],
]);
const ROUNDS = 2;
const ROUND_MS = 2500;
const CPU_AT = 64;

interface Contest {
  readonly direct: MeasuredLoad;
  readonly minimal: MeasuredLoad;
  readonly durable: MeasuredLoad;
  readonly product: MeasuredLoad;
}

/**
 * Turns per second at zero delay, and the processor time they take. The four take turns, so that a busy machine slows
 * them alike.
 */
export async function measureThroughput(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [concurrency, bound] of bounds) {
    const contest = await compete(bench, concurrency);
    rows.push(...rateRows(contest, concurrency, bound));
    if (concurrency === CPU_AT) rows.push(...cpuRows(contest));
  }
  return rows;
}

async function compete(bench: Bench, concurrency: number): Promise<Contest> {
  const rounds: Contest[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push({
      direct: await bench.full(bench.direct, { concurrency, measureMs: ROUND_MS / 2 }),
      minimal: await bench.full(bench.minimal, { concurrency, measureMs: ROUND_MS }),
      durable: await bench.full(bench.durable, { concurrency, measureMs: ROUND_MS }),
      product: await bench.full(bench.product, { concurrency, measureMs: ROUND_MS }),
    });
  }
  const mean = (who: keyof Contest): MeasuredLoad => together(rounds.map((round) => round[who]));
  return { direct: mean('direct'), minimal: mean('minimal'), durable: mean('durable'), product: mean('product') };
}

function rateRows({ direct, minimal, durable, product }: Contest, concurrency: number, bound: Bound | null): Row[] {
  const measured = { measure: `zero delay, ${String(concurrency)} at once`, unit: 'turns/s', product: product.rate };
  return [
    ratioRow(measured, { name: 'durable', value: durable.rate }, bound),
    ratioRow(measured, { name: 'minimal', value: minimal.rate }, null),
    ratioRow(measured, { name: 'model', value: direct.rate }, null),
  ];
}

function cpuRows({ minimal, durable, product }: Contest): Row[] {
  const measured = { measure: `CPU per 1,000 turns, ${String(CPU_AT)} at once`, unit: 's', product: product.cpuPer1000 };
  return [
    ratioRow(measured, { name: 'durable', value: durable.cpuPer1000 }, { atMost: 1.7 }),
    ratioRow(measured, { name: 'minimal', value: minimal.cpuPer1000 }, null),
  ];
}

/**
 * Turns one worker runs at once here: few enough for the cores to last, so that what is compared is the number of
 * workers.
 */
const CONCURRENCY_EACH = 48;
/** More turns wait than two workers take. */
const LOAD = 160;
const MEASURE_MS = 5000;

export async function measureTwoWorkers(bench: Bench): Promise<Row[]> {
  const one = await measureRate(bench, 1);
  const two = await measureRate(bench, 2);
  const measure = `real pace, 2 workers of ${String(CONCURRENCY_EACH)}`;
  return [ratioRow({ measure, unit: 'turns/s', product: two }, { name: '1 worker', value: one }, { atLeast: 1.8 })];
}

async function measureRate(bench: Bench, workers: number): Promise<number> {
  await using product = await startProduct(bench.model, { workers, env: { WORKER_CONCURRENCY: String(CONCURRENCY_EACH) } });
  return (await bench.paced(product, { concurrency: LOAD, measureMs: MEASURE_MS, warmUpTurns: LOAD * 2 })).rate;
}
