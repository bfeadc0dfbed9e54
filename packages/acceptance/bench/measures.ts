import { Bench } from './bench.ts';
import { WORKER_CONCURRENCY } from './contestants.ts';
import { measureIdleStart } from './measures/idle-start.ts';
import { measureIdleStreams } from './measures/idle-streams.ts';
import { measureListing } from './measures/listing.ts';
import { measureFirstText, measureRealPace } from './measures/real-pace.ts';
import { measureSessionGrowth } from './measures/session-growth.ts';
import { measureThroughput } from './measures/throughput.ts';
import { measureTwoWorkers } from './measures/two-workers.ts';
import type { Row } from './row.ts';

type Measure = (bench: Bench) => Promise<Row[]>;

/** By the name that selects it. */
export const measures: ReadonlyMap<string, Measure> = new Map<string, Measure>([
  ['throughput', measureThroughput],
  ['real-pace', measureRealPace],
  ['first-text', measureFirstText],
  ['session-growth', measureSessionGrowth],
  ['listing', measureListing],
  ['idle-streams', measureIdleStreams],
  ['two-workers', measureTwoWorkers],
  ['idle-start', measureIdleStart],
]);

export interface Progress {
  readonly begin: (name: string) => void;
  /** This measure has no rows; the others go on. */
  readonly failed: (name: string, error: unknown) => void;
}

/** Runs the named measures, or all of them. */
export async function runMeasures(names: readonly string[], { begin, failed }: Progress): Promise<Row[]> {
  process.stdout.write(
    `product: 1 gateway, 1 worker, SQLite, WORKER_CONCURRENCY=${String(WORKER_CONCURRENCY)} (default 32), so that no tenant's share caps a load\n`,
  );
  await using bench = await Bench.start();
  begin('warming up');
  await bench.warmUp();
  const rows: Row[] = [];
  for (const [name, measure] of measures) {
    if (names.length > 0 && !names.includes(name)) continue;
    begin(name);
    try {
      rows.push(...(await measure(bench)));
    } catch (error) {
      failed(name, error);
    }
  }
  return rows;
}
