import type { SeededRandom } from '../../chaos/load/seeded-random.ts';

/** One message of one contact. */
export interface Arrival {
  /** Seconds since the beginning. */
  readonly at: number;
  readonly tenant: number;
  /** Unique among all tenants. */
  readonly session: number;
  /** How long the model takes for this turn, all its calls together. */
  readonly modelS: number;
  /** Of the tenant that floods. */
  readonly isFlood: boolean;
}

export interface ArrivalPlan {
  /** Messages in a second, on average. */
  readonly perSecond: number;
  readonly seconds: number;
  readonly tenants: number;
  /** How often one contact writes, on average: a tenant with more messages has more contacts. */
  readonly contactEveryS: number;
  /** 1: all tenants have as much to do; 3: a fifth of them has 58 % of it. */
  readonly skew: number;
  readonly modelS: (random: SeededRandom) => number;
  /** Every so many seconds everybody writes more often for a while. The average stays what it is. */
  readonly bursts?: { readonly everyS: number; readonly lastS: number; readonly times: number };
  /** Tenant 0 has so many messages besides, each of a contact of its own. */
  readonly flood?: { readonly perSecond: number; readonly fromS: number; readonly untilS: number };
}

export const exponential =
  (mean: number) =>
  (random: SeededRandom): number =>
    -mean * Math.log(1 - random.next());

export const uniform =
  (least: number, most: number) =>
  (random: SeededRandom): number =>
    least + (most - least) * random.next();

/** Most take a little less than the mean, a few much longer: half as much again is the standard deviation. */
export const lognormal = (mean: number) => {
  const variance = Math.log(1 + 0.5 ** 2);
  return (random: SeededRandom): number => {
    const normal = Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
    return mean * Math.exp(Math.sqrt(variance) * normal - variance / 2);
  };
};

/** People who know nothing of one another: Poisson arrivals, with what the plan has besides, in order of time. */
export function* planArrivals(plan: ArrivalPlan, random: SeededRandom): Generator<Arrival> {
  const most = mostPerSecond(plan);
  let begun = 0;
  for (let at = exponential(1 / most)(random); at < plan.seconds; at += exponential(1 / most)(random)) {
    // Drawn for the busiest moment, and thinned out for this one.
    const [ordinary, flood] = [ordinaryAt(plan, at), floodAt(plan, at)];
    const drawn = random.next() * most;
    if (drawn >= ordinary + flood) continue;
    begun += 1;
    const isExtra = drawn >= ordinary;
    const tenant = isExtra ? 0 : Math.floor(plan.tenants * random.next() ** plan.skew);
    // Those of the flood count down, so that they meet none of the others.
    const session = isExtra ? -begun : tenant * CONTACTS_MAX + Math.floor(random.next() * countContacts(plan, tenant));
    yield { at, tenant, session, modelS: plan.modelS(random), isFlood: plan.flood !== undefined && tenant === 0 };
  }
}

const CONTACTS_MAX = 2 ** 24;

function countContacts({ perSecond, tenants, skew, contactEveryS }: ArrivalPlan, tenant: number): number {
  const share = ((tenant + 1) / tenants) ** (1 / skew) - (tenant / tenants) ** (1 / skew);
  return Math.max(1, Math.min(CONTACTS_MAX, Math.round(perSecond * share * contactEveryS)));
}

function ordinaryAt({ perSecond, bursts }: ArrivalPlan, at: number): number {
  if (bursts === undefined) return perSecond;
  const { everyS, lastS, times } = bursts;
  const between = (perSecond * everyS) / (everyS - lastS + times * lastS);
  return at % everyS < lastS ? between * times : between;
}

function floodAt({ flood }: ArrivalPlan, at: number): number {
  return flood !== undefined && at >= flood.fromS && at < flood.untilS ? flood.perSecond : 0;
}

function mostPerSecond(plan: ArrivalPlan): number {
  return ordinaryAt(plan, 0) + (plan.flood?.perSecond ?? 0);
}
