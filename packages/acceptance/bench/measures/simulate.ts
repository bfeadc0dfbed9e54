import { SeededRandom } from '../../chaos/load/seeded-random.ts';
import { percentile } from '../bench.ts';
import { readSimulationConfig, type SimulationConfig } from '../config.ts';
import { absoluteRow, type Row } from '../row.ts';
import { lognormal, planArrivals, type ArrivalPlan } from '../simulation/arrivals.ts';
import { calibrate, startRig } from '../simulation/calibrate.ts';
import { simulate, type SimulatedRun, type TurnCosts } from '../simulation/simulate.ts';
import { describeCosts } from './simulation.ts';

const WARM_UP_S = 120;
/** A contact takes about a minute for the next message. */
const CONTACT_EVERY_S = 60;
const SKEW = 3;
const SEED = 20_261_128;
/** Five times as many messages for 20 s of every five minutes. */
const bursts = { everyS: 300, lastS: 20, times: 5 };
/** One tenant has half as many messages as all others together. */
const FLOOD_SHARE = 0.5;

/**
 * An hour of a deployment of any size on simulated time, with what a turn costs on the machine at hand: which part is
 * full first, and what that does to the turns. Every process has a core of its own.
 */
export async function simulateDeployments(): Promise<Row[]> {
  const config = readSimulationConfig();
  const costs = config.costs === undefined ? await measureCosts() : toSeconds(config.costs);
  process.stdout.write(`${describeCosts(costs)}\n`);
  const plan: ArrivalPlan = {
    perSecond: config.messagesPerHour / 3600,
    seconds: WARM_UP_S + config.seconds,
    tenants: config.tenants,
    contactEveryS: CONTACT_EVERY_S,
    skew: SKEW,
    modelS: lognormal(config.modelS),
  };
  const flood = { perSecond: plan.perSecond * FLOOD_SHARE, fromS: WARM_UP_S, untilS: plan.seconds };
  return [
    ...runPlan('even', plan, { config, costs }),
    ...runPlan('bursts', { ...plan, bursts }, { config, costs }),
    ...runPlan('flood', { ...plan, flood }, { config, costs }),
  ];
}

function toSeconds({ gateway, worker, redis, others, sync, inside, outside }: NonNullable<SimulationConfig['costs']>): TurnCosts {
  return {
    gatewayS: gateway / 1000,
    workerS: worker / 1000,
    redisS: redis / 1000,
    othersS: others / 1000,
    syncS: sync / 1000,
    insideS: inside / 1000,
    outsideS: outside / 1000,
  };
}

async function measureCosts(): Promise<TurnCosts> {
  await using rig = await startRig();
  return await calibrate(rig);
}

function runPlan(
  name: string,
  plan: ArrivalPlan,
  { config, costs }: { readonly config: SimulationConfig; readonly costs: TurnCosts },
): Row[] {
  const { gateways, workers, slots, tenantShare = Math.ceil(slots / 2) } = config;
  const deployment = { gateways, workers, slots, tenantShare, cores: undefined };
  const load = { arrivals: planArrivals(plan, new SeededRandom(SEED)), warmUpS: WARM_UP_S, measureS: config.seconds, seed: SEED };
  const run = simulate(deployment, costs, load);
  return toRows(name, run);
}

function toRows(name: string, run: SimulatedRun): Row[] {
  const row = (measure: string, unit: string, product: number): Row => absoluteRow({ measure: `${name}: ${measure}`, unit, product }, null);
  const fullest = run.busy.toSorted((one, other) => other.share - one.share);
  const flood = run.floodS.length === 0 ? [] : [row("the flood's own turns, p50", 's', percentile(run.floodS, 0.5))];
  return [
    row('turns ended', 'turns/s', run.perSecond),
    row('waiting for a slot, p50', 's', percentile(run.waitS, 0.5)),
    row('waiting for a slot, p95', 's', percentile(run.waitS, 0.95)),
    row('turn, p50', 's', percentile(run.turnS, 0.5)),
    row('turn, p95', 's', percentile(run.turnS, 0.95)),
    ...flood,
    row('turns open at once at most', 'turns', run.openMost),
    row('syncs of logs', '/s', run.syncsPerSecond),
    ...fullest.map(({ part, share }, place) => row(`${part} in use${place === 0 ? ', the fullest' : ''}`, '%', share * 100)),
  ];
}
