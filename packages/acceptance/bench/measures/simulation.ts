import { availableParallelism } from 'node:os';
import { SeededRandom } from '../../chaos/load/seeded-random.ts';
import { percentile } from '../bench.ts';
import { startProduct } from '../contestants.ts';
import { ratioRow, type Row } from '../row.ts';
import { planArrivals, uniform, type Arrival } from '../simulation/arrivals.ts';
import { calibrate, runOpen, startRig, TENANTS, warmUp, type Rig } from '../simulation/calibrate.ts';
import { simulate, type Deployment, type TurnCosts } from '../simulation/simulate.ts';

/** What the model takes for a turn, drawn evenly. */
const [LEAST_S, MOST_S] = [0.3, 1];
const MEAN_S = (LEAST_S + MOST_S) / 2;
const LEAD_S = 8;
const MEASURE_S = 50;
/** Often enough that some write while the answer before is still made. */
const CONTACT_EVERY_S = 15;
const within = { atLeast: 0.85, atMost: 1.15 };

/** Two workers of few slots: what is full are the slots, not the cores of the machine. */
const fewSlots: Deployment = { gateways: 1, workers: 2, slots: 8, tenantShare: 8, cores: availableParallelism() };
/** What these slots can end in a second, if they took no time of their own. */
const SLOTS_PER_SECOND = (fewSlots.workers * fewSlots.slots) / MEAN_S;
/** One worker with more slots than turns come: what is in use are the cores. */
const manySlots: Deployment = { ...fewSlots, workers: 1, slots: 256, tenantShare: 256 };
const CORES_SHARE = 0.6;

interface Compared {
  readonly name: string;
  readonly deployment: Deployment;
  readonly perSecond: number;
  readonly seed: number;
}

/**
 * What the simulation predicts, beside what happens: calibrated by runs of their own first, then the same arrivals with
 * the same times of the model, in the simulation and on the running system.
 */
export async function measureSimulation(): Promise<Row[]> {
  await using rig = await startRig();
  const costs = await calibrate(rig);
  process.stdout.write(`${describeCosts(costs)}\n`);
  const rows: Row[] = [];
  for (const [index, share] of [0.3, 0.6, 0.85].entries()) {
    const name = `${String(share * 100)} % of ${String(fewSlots.workers)} × ${String(fewSlots.slots)} slots`;
    rows.push(...(await compare(rig, costs, { name, deployment: fewSlots, perSecond: share * SLOTS_PER_SECOND, seed: index + 1 })));
  }
  const eachS = costs.gatewayS + costs.workerS + costs.redisS + costs.othersS;
  const perSecond = (CORES_SHARE * availableParallelism()) / eachS;
  const name = `${String(CORES_SHARE * 100)} % of ${String(availableParallelism())} cores`;
  rows.push(...(await compare(rig, costs, { name, deployment: manySlots, perSecond, seed: 4 })));
  return rows;
}

/** As `BENCH_COSTS` takes it, apart from the first words. */
export function describeCosts(costs: TurnCosts): string {
  const each = Object.entries(costs).map(([name, seconds]: [string, number]) => `${name.slice(0, -1)} ${(seconds * 1000).toFixed(2)}`);
  return `costs, ms per turn: ${each.join(', ')}`;
}

async function compare(rig: Rig, costs: TurnCosts, { name, deployment, perSecond, seed }: Compared): Promise<Row[]> {
  const plan = {
    perSecond,
    seconds: LEAD_S + MEASURE_S,
    tenants: TENANTS,
    contactEveryS: CONTACT_EVERY_S,
    skew: 1,
    modelS: uniform(LEAST_S, MOST_S),
  };
  const arrivals = [...planArrivals(plan, new SeededRandom(seed))];
  const predicted = simulate(deployment, costs, { arrivals, warmUpS: LEAD_S, measureS: MEASURE_S, seed });
  const { result, cpu } = await run(rig, deployment, arrivals);
  const coresUsed = (Object.values(cpu).reduce((sum, each) => sum + each, 0) * result.turns) / result.seconds;
  const coresPredicted = (predicted.busy.find(({ part }) => part === 'cores')?.share ?? Number.NaN) * availableParallelism();
  const row = (measure: string, unit: string, [product, value]: readonly [number, number]): Row =>
    ratioRow({ measure: `${name}, ${measure}`, unit, product }, { name: 'predicted', value }, within);
  const times = (share: number) => [percentile(result.turnMs, share), percentile(predicted.turnS, share) * 1000] as const;
  return [
    row('turns ended', 'turns/s', [result.turns / result.seconds, predicted.perSecond]),
    row('turn, p50', 'ms', times(0.5)),
    row('turn, p95', 'ms', times(0.95)),
    { ...row('cores in use, all processes', 'cores', [coresUsed, coresPredicted]), bound: null, target: null, reached: null },
  ];
}

async function run(rig: Rig, { gateways, workers, slots, tenantShare }: Deployment, arrivals: readonly Arrival[]) {
  const env = { WORKER_CONCURRENCY: String(slots), TENANT_SHARE: String(tenantShare) };
  await using product = await startProduct(rig.model, { gateways, workers, env });
  await warmUp(rig, product);
  const turns = arrivals.map(({ at, tenant, session, modelS }) => {
    return { atMs: at * 1000, tenant, sender: `contact-${String(session)}`, modelMs: modelS * 1000 };
  });
  return await runOpen(rig, product, { turns, warmUpMs: LEAD_S * 1000, measureMs: MEASURE_S * 1000 });
}
