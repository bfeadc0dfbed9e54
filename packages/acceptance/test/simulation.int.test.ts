import { describe, expect, it } from '@jest/globals';
import { exponential, planArrivals, type Arrival, type ArrivalPlan } from '../bench/simulation/arrivals.ts';
import { simulate, type Deployment, type SimulatedRun, type TurnCosts } from '../bench/simulation/simulate.ts';
import { Station, SyncedLog } from '../bench/simulation/stations.ts';
import { Timeline } from '../bench/simulation/timeline.ts';
import { SeededRandom } from '../chaos/load/seeded-random.ts';

const free: TurnCosts = { gatewayS: 0, workerS: 0, redisS: 0, othersS: 0, syncS: 0, outsideS: 0, insideS: 0 };
const seed = 20_261_128;

const deploy = (given: Partial<Deployment> = {}): Deployment => {
  return { gateways: 1, workers: 1, slots: 8, tenantShare: given.slots ?? 8, cores: undefined, ...given };
};

const mean = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** One message for each contact named, all at once, with a second of the model. */
const atOnce = (contacts: readonly { readonly tenant: number; readonly session: number }[]): Arrival[] =>
  contacts.map((contact) => ({ ...contact, at: 0, modelS: 1, isFlood: false }));

const run = (deployment: Deployment, arrivals: Iterable<Arrival>, { costs = free, warmUpS = 0, measureS = 1000 } = {}): SimulatedRun =>
  simulate(deployment, costs, { arrivals, warmUpS, measureS, seed });

/** Poisson arrivals of contacts who never meet themselves. */
const poisson = (plan: Partial<ArrivalPlan> & Pick<ArrivalPlan, 'perSecond' | 'seconds'>): Generator<Arrival> =>
  planArrivals({ tenants: 1000, contactEveryS: 1e6, skew: 1, modelS: exponential(1), ...plan }, new SeededRandom(seed));

/** That a turn waits where `slots` are asked for `load` seconds of work in a second (Erlang's C formula). */
function erlangC(slots: number, load: number): number {
  let term = 1;
  let sum = 1;
  for (let number = 1; number < slots; number += 1) {
    term *= load / number;
    sum += term;
  }
  const full = ((term * load) / slots) * (slots / (slots - load));
  return full / (sum + full);
}

describe('simulated slots', () => {
  it.each([
    [1, 0.7],
    [8, 6.8],
    [16, 12],
  ])('of which there are %i let turns wait as often and as long as Erlang’s formula says at a load of %d', (slots, load) => {
    const seconds = 150_000 / load;
    const { waitS, perSecond, busy } = run(deploy({ slots }), poisson({ perSecond: load, seconds }), {
      warmUpS: 1000,
      measureS: seconds - 1000,
    });
    const waiting = erlangC(slots, load);
    expect(waitS.filter((wait) => wait > 0).length / waitS.length / waiting).toBeCloseTo(1, 1);
    expect(mean(waitS) / (waiting / (slots - load))).toBeCloseTo(1, 1);
    const p95 = Math.log(waiting / 0.05) / (slots - load);
    expect((waitS[Math.floor(waitS.length * 0.95)] ?? 0) / p95).toBeCloseTo(1, 1);
    expect(perSecond / load).toBeCloseTo(1, 1);
    expect((busy.find(({ part }) => part === 'slots')?.share ?? 0) / (load / slots)).toBeCloseTo(1, 1);
  });
});

describe('simulated lanes', () => {
  it('run the turns of one session one after the other, and those of others meanwhile', () => {
    const contacts = [...Array.from({ length: 5 }, () => ({ tenant: 0, session: 1 })), { tenant: 0, session: 2 }];
    expect([...run(deploy(), atOnce(contacts)).turnS]).toEqual([1, 1, 2, 3, 4, 5]);
  });

  it('leave the slots above a tenant’s share to others', () => {
    const flood = Array.from({ length: 10 }, (_, session) => ({ tenant: 0, session }));
    const { turnS, waitS } = run(deploy({ slots: 4, tenantShare: 2 }), atOnce([...flood, { tenant: 1, session: 100 }]));
    expect([...turnS]).toEqual([1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    expect([...waitS]).toEqual([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
  });

  it('have a share that grows with the workers', () => {
    const contacts = Array.from({ length: 8 }, (_, session) => ({ tenant: 0, session }));
    expect([...run(deploy({ slots: 4, tenantShare: 2, workers: 2 }), atOnce(contacts)).turnS]).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
  });

  it('have a flood wait behind itself', () => {
    const seconds = 1000;
    const flood = { perSecond: 20, fromS: 0, untilS: seconds };
    const deployment = deploy({ slots: 16, tenantShare: 8 });
    const quiet = run(deployment, poisson({ perSecond: 4, seconds }), { measureS: seconds });
    const flooded = run(deployment, poisson({ perSecond: 4, seconds, flood }), { measureS: seconds });
    expect(mean(flooded.waitS)).toBeLessThan(mean(quiet.waitS) + 0.2);
    expect(mean(flooded.floodS)).toBeGreaterThan(seconds / 4);
  });
});

describe('a simulated process', () => {
  it('works on one thing at a time, in order', () => {
    const timeline = new Timeline();
    const station = new Station(timeline, { name: 'a process' });
    const ends: [string, number][] = [];
    for (const [name, seconds] of [
      ['first', 2],
      ['second', 1],
    ] as const) {
      station.serve(seconds, () => ends.push([name, timeline.now]));
    }
    timeline.run();
    expect(ends).toEqual([
      ['first', 2],
      ['second', 3],
    ]);
    expect(station.workedS).toBe(3);
  });

  it('waits for a core where there are fewer of them than processes', () => {
    const timeline = new Timeline();
    const cores = new Station(timeline, { name: 'cores', servers: 2 });
    const ends: number[] = [];
    for (const name of ['gateway', 'worker', 'Redis']) {
      new Station(timeline, { name, cores }).serve(1, () => ends.push(timeline.now));
    }
    timeline.run();
    expect(ends).toEqual([1, 1, 2]);
  });

  it('makes turns wait as the formula of Pollaczek and Khinchin says', () => {
    const [perSecond, workS, seconds] = [7, 0.1, 10_000];
    const timeline = new Timeline();
    const random = new SeededRandom(seed);
    const station = new Station(timeline, { name: 'a process' });
    let [waited, served] = [0, 0];
    for (let at = exponential(1 / perSecond)(random); at < seconds; at += exponential(1 / perSecond)(random)) {
      timeline.at(at, () => {
        station.serve(workS, () => {
          served += 1;
          waited += timeline.now - at - workS;
        });
      });
    }
    timeline.run();
    const load = perSecond * workS;
    expect(waited / served / ((load * workS) / 2 / (1 - load))).toBeCloseTo(1, 1);
  });

  it('syncs its log for all together that came during the sync before', () => {
    const timeline = new Timeline();
    const log = new SyncedLog(timeline, () => 1);
    const ends: number[] = [];
    for (const at of [0, 0.2, 0.4, 3]) timeline.at(at, () => log.sync(() => ends.push(timeline.now)));
    timeline.run();
    expect(ends).toEqual([1, 2, 2, 4]);
    expect(log.syncs).toBe(3);
  });
});

describe('simulated arrivals', () => {
  it('come as often on average with bursts as without, and more often in them', () => {
    const arrivals = [...poisson({ perSecond: 20, seconds: 1000, bursts: { everyS: 100, lastS: 10, times: 5 } })];
    expect(arrivals.length / 20_000).toBeCloseTo(1, 1);
    expect(arrivals.filter(({ at }) => at % 100 < 10).length / 20_000).toBeCloseTo(50 / 140, 1);
  });

  it('come from few tenants mostly where they are skewed', () => {
    const arrivals = [...poisson({ perSecond: 20, seconds: 1000, skew: 3 })];
    expect(arrivals.filter(({ tenant }) => tenant < 200).length / 20_000).toBeCloseTo(0.585, 1);
  });

  it('are the same for the same seed, and so are the figures', () => {
    const costs = { gatewayS: 0.002, workerS: 0.004, redisS: 0.001, othersS: 0.001, syncS: 0.001, outsideS: 0.001, insideS: 0.002 };
    const simulated = (): SimulatedRun => run(deploy({ cores: 2 }), poisson({ perSecond: 5, seconds: 200 }), { costs, measureS: 200 });
    expect(simulated()).toEqual(simulated());
  });
});
