import { SeededRandom } from '../../chaos/load/seeded-random.ts';
import type { Arrival } from './arrivals.ts';
import { SimulatedLanes } from './simulated-lanes.ts';
import { Station, SyncedLog } from './stations.ts';
import { Timeline } from './timeline.ts';
import { WorkerSlots } from './worker-slots.ts';

/** What one turn takes, in seconds, besides the model's time. */
export interface TurnCosts {
  /** Processor time of each kind of process. */
  readonly gatewayS: number;
  readonly workerS: number;
  readonly redisS: number;
  /** Of what else runs on the same cores: the model server and who asks, where there is one machine for all. */
  readonly othersS: number;
  /** One sync of a log. A turn waits for two: the gateway's when it is accepted, the worker's when it is published. */
  readonly syncS: number;
  /** What passes besides, on the way to a slot and back, and while it is held: wake-ups, timers, round trips. */
  readonly outsideS: number;
  readonly insideS: number;
}

export interface Deployment {
  readonly gateways: number;
  readonly workers: number;
  /** `WORKER_CONCURRENCY` and `TENANT_SHARE` of each worker. */
  readonly slots: number;
  readonly tenantShare: number;
  /** Of the one machine on which all runs; undefined: each process has a core of its own. */
  readonly cores: number | undefined;
}

export interface SimulatedLoad {
  readonly arrivals: Iterable<Arrival>;
  readonly warmUpS: number;
  readonly measureS: number;
  /** Of what varies in the system, apart from the arrivals. */
  readonly seed: number;
}

export interface SimulatedRun {
  /** Turns that ended while it was measured. */
  readonly turns: number;
  readonly perSecond: number;
  /** Without a tenant that floods: from the message to the end of its answer, and from acceptance to a slot. */
  readonly turnS: Times;
  readonly waitS: Times;
  /** From message to end, of the tenant that floods. */
  readonly floodS: Times;
  readonly busy: readonly Busy[];
  readonly syncsPerSecond: number;
  /** Turns that were accepted and not ended at most: as many streams are open when all are followed. */
  readonly openMost: number;
}

/** Seconds, ascending. */
type Times = Float64Array;

interface Busy {
  readonly part: string;
  /** How much of it was in use, 0 to 1; of several alike the mean. */
  readonly share: number;
}

interface Turn extends Arrival {
  readonly gateway: number;
  acceptedAt: number;
  startedAt: number;
}

/** Half of what work takes is always the same; the rest varies. */
const vary = (random: SeededRandom, mean: number): number => mean * (0.5 - 0.5 * Math.log(1 - random.next()));

/**
 * One deployment on simulated time. A turn crosses the processes as docs/architecture.md shows them; a process is a
 * server with a line before it, and so is the set of cores.
 */
class SimulatedSystem {
  readonly #timeline: Timeline;
  readonly #costs: TurnCosts;
  readonly #random: SeededRandom;
  readonly #ended: (turn: Turn) => void;
  readonly cores: Station | undefined;
  readonly gateways: readonly Station[];
  readonly workers: readonly Station[];
  readonly redis: Station;
  readonly logs: readonly SyncedLog[];
  readonly slots: WorkerSlots<Turn>;
  readonly #lanes: SimulatedLanes<Turn>;
  readonly #others: Station;

  constructor(
    timeline: Timeline,
    deployment: Deployment,
    given: { readonly costs: TurnCosts; readonly seed: number; readonly ended: (turn: Turn) => void },
  ) {
    const { gateways, workers, slots, tenantShare } = deployment;
    this.#timeline = timeline;
    this.#costs = given.costs;
    this.#ended = given.ended;
    const random = new SeededRandom(given.seed);
    this.#random = random;
    const cores = deployment.cores === undefined ? undefined : new Station(timeline, { name: 'cores', servers: deployment.cores });
    this.cores = cores;
    const processes = (count: number, name: string): Station[] =>
      Array.from({ length: count }, () => new Station(timeline, { name, cores }));
    this.gateways = processes(gateways, 'gateways');
    this.workers = processes(workers, 'workers');
    [this.redis, this.#others] = [
      new Station(timeline, { name: 'Redis', cores }),
      new Station(timeline, { name: 'others', servers: 2, cores }),
    ];
    this.logs = Array.from({ length: gateways + workers }, () => new SyncedLog(timeline, () => vary(random, given.costs.syncS)));
    this.slots = new WorkerSlots(timeline, {
      count: workers,
      slots,
      start: (turn, worker) => {
        this.#run(turn, worker);
      },
    });
    this.#lanes = new SimulatedLanes(tenantShare * workers, (turn) => {
      this.slots.wake(turn);
    });
  }

  /** Half of the work of gateway, worker and Redis is before the model's answer, half after it. */
  arrive(turn: Turn): void {
    const accept = (): void => {
      this.#work(this.gateways[turn.gateway], this.#costs.gatewayS / 2, () => {
        this.logs[turn.gateway]?.sync(() => {
          this.#work(this.redis, this.#costs.redisS / 2, () => {
            turn.acceptedAt = this.#timeline.now;
            this.#lanes.accept(turn);
          });
        });
      });
    };
    if (this.cores === undefined) accept();
    else this.#work(this.#others, this.#costs.othersS, accept);
  }

  #run(turn: Turn, worker: number): void {
    turn.startedAt = this.#timeline.now;
    this.#work(this.workers[worker], this.#costs.workerS / 2, () => {
      this.#timeline.after(turn.modelS + this.#costs.insideS, () => {
        this.#work(this.workers[worker], this.#costs.workerS / 2, () => {
          this.logs[this.gateways.length + worker]?.sync(() => {
            this.#work(this.redis, this.#costs.redisS / 2, () => {
              this.#finish(turn, worker);
            });
          });
        });
      });
    });
  }

  #finish(turn: Turn, worker: number): void {
    this.slots.release(worker);
    this.#lanes.finish(turn);
    this.#work(this.gateways[turn.gateway], this.#costs.gatewayS / 2, () => {
      this.#timeline.after(this.#costs.outsideS, () => {
        this.#ended(turn);
      });
    });
  }

  #work(station: Station | undefined, seconds: number, then: () => void): void {
    station?.serve(vary(this.#random, seconds), then);
  }
}

/** Runs a load through a deployment. The same arguments give the same figures. */
export function simulate(deployment: Deployment, costs: TurnCosts, load: SimulatedLoad): SimulatedRun {
  const timeline = new Timeline();
  const [turnS, waitS, floodS]: [number[], number[], number[]] = [[], [], []];
  let [open, openMost] = [0, 0];
  const system = new SimulatedSystem(timeline, deployment, {
    costs,
    seed: load.seed,
    ended: (turn) => {
      open -= 1;
      if (timeline.now < load.warmUpS) return;
      (turn.isFlood ? floodS : turnS).push(timeline.now - turn.at);
      if (!turn.isFlood) waitS.push(turn.startedAt - turn.acceptedAt);
    },
  });
  const arrivals = load.arrivals[Symbol.iterator]();
  let arrived = 0;
  const arriveNext = (): void => {
    const { done, value } = arrivals.next();
    if (done === true) return;
    timeline.at(value.at, () => {
      arrived += 1;
      open += 1;
      openMost = Math.max(openMost, open);
      system.arrive({ ...value, gateway: arrived % deployment.gateways, acceptedAt: 0, startedAt: 0 });
      arriveNext();
    });
  };
  arriveNext();
  timeline.run(load.warmUpS);
  const before = takeWork(system);
  timeline.run(load.warmUpS + load.measureS);
  const after = takeWork(system);
  return {
    turns: turnS.length + floodS.length,
    perSecond: (turnS.length + floodS.length) / load.measureS,
    turnS: Float64Array.from(turnS).sort(),
    waitS: Float64Array.from(waitS).sort(),
    floodS: Float64Array.from(floodS).sort(),
    busy: after.parts.map(({ part, workedS, of }, index) => ({
      part,
      share: (workedS - (before.parts[index]?.workedS ?? 0)) / of / load.measureS,
    })),
    syncsPerSecond: (after.syncs - before.syncs) / load.measureS,
    openMost,
  };
}

function takeWork({ gateways, workers, redis, logs, slots, cores }: SimulatedSystem) {
  const sum = (all: readonly { readonly workedS: number }[]): number => all.reduce((total, { workedS }) => total + workedS, 0);
  const parts = [
    { part: 'slots', workedS: slots.takenS, of: slots.all },
    { part: 'processors of workers', workedS: sum(workers), of: workers.length },
    { part: 'processors of gateways', workedS: sum(gateways), of: gateways.length },
    { part: 'processor of Redis', workedS: redis.workedS, of: 1 },
    { part: 'logs', workedS: sum(logs), of: logs.length },
  ];
  if (cores !== undefined) parts.push({ part: 'cores', workedS: cores.workedS, of: cores.servers });
  return { parts, syncs: logs.reduce((total, { syncs }) => total + syncs, 0) };
}
