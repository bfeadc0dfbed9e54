import { Bench } from './bench.ts';
import { WORKER_CONCURRENCY } from './contestants.ts';
import { measureIdleStart, measureIdleStreams } from './measures/idle.ts';
import { measureLargeMemory } from './measures/large-memory.ts';
import { measureListing } from './measures/listing.ts';
import { measureMemory } from './measures/memory.ts';
import { measureFirstText, measureRealPace } from './measures/real-pace.ts';
import { measureSandbox } from './measures/sandbox.ts';
import { measureScale } from './measures/scale.ts';
import { measureSessionGrowth } from './measures/session-growth.ts';
import { measureSimulation } from './measures/simulation.ts';
import { simulateDeployments } from './measures/simulate.ts';
import { measureTenants } from './measures/tenants.ts';
import { measureThroughput, measureTwoWorkers } from './measures/throughput.ts';
import { measureUi } from './measures/ui.ts';
import { measureWebhooks } from './measures/webhooks.ts';
import type { Row } from './row.ts';

type Measure = (bench: Bench) => Promise<Row[]>;

const withBench: ReadonlyMap<string, Measure> = new Map<string, Measure>([
  ['throughput', measureThroughput],
  ['real-pace', measureRealPace],
  ['first-text', measureFirstText],
  ['session-growth', measureSessionGrowth],
  ['listing', measureListing],
  ['idle-streams', measureIdleStreams],
  ['two-workers', measureTwoWorkers],
]);

/** These start what they measure themselves. */
const alone: ReadonlyMap<string, () => Promise<Row[]>> = new Map([
  ['idle-start', measureIdleStart],
  ['sandbox', measureSandbox],
  ['memory', measureMemory],
  ['large-memory', measureLargeMemory],
  ['webhooks', measureWebhooks],
  ['tenants', measureTenants],
  ['scale', measureScale],
  ['ui', measureUi],
  ['simulate', simulateDeployments],
  ['simulation', measureSimulation],
]);

/** Each selects a measure. */
export const measureNames: readonly string[] = [...withBench.keys(), ...alone.keys()];

export interface Progress {
  readonly begin: (name: string) => void;
  /** This measure has no rows; the others go on. */
  readonly failed: (name: string, error: unknown) => void;
}

/** Runs the named measures, or all of them. */
export async function runMeasures(names: readonly string[], progress: Progress): Promise<Row[]> {
  const isNamed = ([name]: readonly [string, unknown]): boolean => names.length === 0 || names.includes(name);
  const shared = [...withBench].filter(isNamed);
  const rows = shared.length === 0 ? [] : await runWithBench(shared, progress);
  for (const [name, measure] of [...alone].filter(isNamed)) rows.push(...(await runOne(name, measure, progress)));
  return rows;
}

async function runWithBench(chosen: readonly (readonly [string, Measure])[], progress: Progress): Promise<Row[]> {
  process.stdout.write(
    `product: 1 gateway, 1 worker, SQLite, WORKER_CONCURRENCY=${String(WORKER_CONCURRENCY)} (default 32), so that no tenant's share caps a load\n`,
  );
  await using bench = await Bench.start();
  progress.begin('warming up');
  await bench.warmUp();
  const rows: Row[] = [];
  for (const [name, measure] of chosen) rows.push(...(await runOne(name, async () => measure(bench), progress)));
  return rows;
}

async function runOne(name: string, measure: () => Promise<Row[]>, { begin, failed }: Progress): Promise<Row[]> {
  begin(name);
  try {
    return await measure();
  } catch (error) {
    failed(name, error);
    return [];
  }
}
