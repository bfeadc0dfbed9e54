import { Bench } from './bench.ts';
import { WORKER_CONCURRENCY } from './contestants.ts';
import { measureFirstText, measureRealPace } from './measures/real-pace.ts';
import { measureThroughput } from './measures/throughput.ts';
import type { Row } from './row.ts';

type Measure = (bench: Bench) => Promise<Row[]>;

/** By the name that selects it. */
export const measures: ReadonlyMap<string, Measure> = new Map<string, Measure>([
  ['throughput', measureThroughput],
  ['real-pace', measureRealPace],
  ['first-text', measureFirstText],
]);

/** Runs the named measures, or all of them. */
export async function runMeasures(names: readonly string[], begin: (name: string) => void): Promise<Row[]> {
  process.stdout.write(`product: 1 gateway, 1 worker, SQLite, WORKER_CONCURRENCY=${String(WORKER_CONCURRENCY)} (default 32), so that no tenant's share caps a load\n`);
  await using bench = await Bench.start();
  const rows: Row[] = [];
  for (const [name, measure] of measures) {
    if (names.length > 0 && !names.includes(name)) continue;
    begin(name);
    rows.push(...(await measure(bench)));
  }
  return rows;
}
