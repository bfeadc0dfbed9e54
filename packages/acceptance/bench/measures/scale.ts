import { startPostgres } from '@concierge/testing';
import { startProduct, type Product } from '../contestants.ts';
import { LoadDriver } from '../load/load-driver.ts';
import type { LoadSpec } from '../load/load-spec.ts';
import { BenchModel, paces } from '../model.ts';
import { absoluteRow, ratioRow, type Row } from '../row.ts';

/** Gateways, and as many workers. */
const sizes = [1, 2, 4] as const;
const CONCURRENCY = 64;
/** For each gateway and worker: cold code is slow. */
const WARM_UP_TURNS = 2500;
const MEASURE_MS = 4000;
/** What a turn may cost at four of each, as a share of what it costs at one. */
const MAX_GROWTH = 1.15;

interface Cost {
  readonly rate: number;
  readonly cpuPer1000: number;
  readonly commandsPerTurn: number;
}

/**
 * What a turn costs as gateways and workers are added over one Redis and one PostgreSQL. The load stays the same, so on
 * few cores the rate says little: what has to stay is the processor time and the Redis commands of each turn.
 */
export async function measureScale(): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const postgres = parts.use(await startPostgres());
  const model = parts.use(await BenchModel.start());
  const driver = parts.use(await LoadDriver.start());
  await model.setPace(paces.zeroDelay);
  const costs = new Map<number, Cost>();
  for (const size of sizes) {
    await using product = await startProduct(model, { gateways: size, workers: size, databaseUrl: await postgres.createDatabase() });
    costs.set(size, await measureCost(product, driver));
  }
  return sizes.flatMap((size) => rowsFor(size, costs));
}

async function measureCost({ target, pids, system }: Product, driver: LoadDriver): Promise<Cost> {
  const spec: LoadSpec = {
    ...target,
    concurrency: CONCURRENCY,
    rampMs: 0,
    warmUpMs: 500,
    warmUpTurns: WARM_UP_TURNS,
    measureMs: MEASURE_MS,
    senders: undefined,
  };
  for (const _ of system.workers) await driver.run({ ...spec, measureMs: 100 });
  const { rate, cpuPer1000 } = await driver.run({ ...spec, warmUpTurns: 0 }, pids);
  const redis = system.redis.client();
  const countCommands = async (): Promise<number> =>
    Number(/^total_commands_processed:(?<count>\d+)/mu.exec(await redis.info('stats'))?.groups?.['count'] ?? Number.NaN);
  const commandsPerTurn = await driver.count({ ...spec, warmUpTurns: 0 }, countCommands);
  redis.disconnect();
  return { rate, cpuPer1000, commandsPerTurn };
}

function rowsFor(size: number, costs: ReadonlyMap<number, Cost>): Row[] {
  const [one, cost] = [costs.get(1), costs.get(size)];
  if (one === undefined || cost === undefined) throw new Error('a size was not measured');
  const of = `${String(size)} gateways and workers`;
  const rate = absoluteRow({ measure: `${of}, ${String(CONCURRENCY)} at once`, unit: 'turns/s', product: cost.rate }, null);
  const cpu = { measure: `${of}, CPU per 1,000 turns`, unit: 's', product: cost.cpuPer1000 };
  const commands = { measure: `${of}, Redis commands per turn`, unit: 'commands', product: cost.commandsPerTurn };
  if (size === 1) return [rate, absoluteRow(cpu, null), absoluteRow(commands, null)];
  const bound = size === sizes.at(-1) ? { atMost: MAX_GROWTH } : null;
  return [
    rate,
    ratioRow(cpu, { name: '1 of each', value: one.cpuPer1000 }, bound),
    ratioRow(commands, { name: '1 of each', value: one.commandsPerTurn }, bound),
  ];
}
