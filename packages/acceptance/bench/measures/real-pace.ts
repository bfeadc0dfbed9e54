import { percentile, type Bench } from '../bench.ts';
import type { LoadResult } from '../load/load-spec.ts';
import { differenceRow, ratioRow, type Bound, type Row } from '../row.ts';

/** Bounds as shares of the minimal pipeline; null: shown, without a target. */
const rateBounds = new Map<number, Bound | null>([
  [64, null],
  [256, { atLeast: 0.95 }],
]);
const RATE_MS = 5000;

/** Milliseconds above the model asked directly. */
const firstTextBounds = [
  { concurrency: 1, measureMs: 15_000, p50: 5, p99: 12 },
  { concurrency: 64, measureMs: 5000, p50: 12, p99: 45 },
] as const;

/** Measures turns per second at the pace of providers, beside the minimal pipeline. */
export async function measureRealPace(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [concurrency, bound] of rateBounds) {
    const minimal = await bench.paced(bench.minimal, { concurrency, measureMs: RATE_MS });
    const product = await bench.paced(bench.product, { concurrency, measureMs: RATE_MS });
    const measure = `real pace, ${String(concurrency)} at once`;
    rows.push(ratioRow({ measure, unit: 'turns/s', product: product.rate }, { name: 'minimal', value: minimal.rate }, bound));
    const cpu = { measure: `${measure}, CPU per 1,000 turns`, unit: 's', product: product.cpuPer1000 };
    rows.push(ratioRow(cpu, { name: 'minimal', value: minimal.cpuPer1000 }, null));
  }
  return rows;
}

/** What the system adds to the time until the first text is read. */
export async function measureFirstText(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { concurrency, measureMs, ...bounds } of firstTextBounds) {
    const direct = await bench.paced(bench.direct, { concurrency, measureMs: measureMs / 2 });
    const minimal = await bench.paced(bench.minimal, { concurrency, measureMs: measureMs / 2 });
    const product = await bench.paced(bench.product, { concurrency, measureMs });
    const measure = `first text, ${String(concurrency)} at once`;
    rows.push(row(`${measure}, p50`, product, { name: 'model', result: direct, share: 0.5, bound: bounds.p50 }));
    rows.push(row(`${measure}, p99`, product, { name: 'model', result: direct, share: 0.99, bound: bounds.p99 }));
    rows.push(row(`${measure}, p50, minimal pipeline`, minimal, { name: 'model', result: direct, share: 0.5, bound: null }));
    rows.push(row(`${measure}, p99, minimal pipeline`, minimal, { name: 'model', result: direct, share: 0.99, bound: null }));
  }
  return rows;
}

interface Beside {
  readonly name: string;
  readonly result: LoadResult;
  readonly share: number;
  readonly bound: number | null;
}

function row(measure: string, measured: LoadResult, { name, result, share, bound }: Beside): Row {
  const baseline = { name, value: percentile(result.firstTextMs, share) };
  return differenceRow(
    { measure, unit: 'ms', product: percentile(measured.firstTextMs, share) },
    baseline,
    bound === null ? null : { atMost: bound },
  );
}
