import type { TurnKind } from '../audit/evidence.ts';
import type { TurnRequest } from './request.ts';
import type { SeededRandom } from './seeded-random.ts';

export interface LoadSize {
  readonly turns: number;
  readonly conversations: number;
  readonly tenants: number;
  /** The bursts begin within this time. */
  readonly overMs: number;
  /** Turns that a burst has, on average. */
  readonly burst: number;
  /** Share of turns whose reply takes several seconds. */
  readonly slow?: number;
}

export interface PlannedBurst {
  readonly atMs: number;
  readonly turns: readonly TurnRequest[];
}

/** A contact of cs, or an owner's session whose id only its first acknowledgement contains. */
export interface PlannedConversation {
  readonly name: string;
  readonly tenantId: string;
  readonly sender: string | null;
  readonly bursts: readonly PlannedBurst[];
}

/** One conversation in so many is an owner's. */
const ADMIN_EVERY = 4;

/** Which client sends what when: the same for the same seed and size. */
export function planLoad(random: SeededRandom, size: LoadSize): PlannedConversation[] {
  const { turns, conversations, tenants } = size;
  return Array.from({ length: conversations }, (_, index) => {
    const name = `c${String(index).padStart(2, '0')}`;
    const isAdmin = index % ADMIN_EVERY === 0;
    const count = Math.floor(turns / conversations) + (index < turns % conversations ? 1 : 0);
    const requests = Array.from({ length: count }, (__, number) => planTurn(random, { name, number, isAdmin, slow: size.slow ?? 0 }));
    return {
      name,
      tenantId: `chaos-${String(index % tenants)}`,
      sender: isAdmin ? null : `contact ${name}`,
      bursts: planBursts(random, requests, size),
    };
  });
}

function planTurn(
  random: SeededRandom,
  { name, number, isAdmin, slow }: { name: string; number: number; isAdmin: boolean; slow: number },
): TurnRequest {
  const marker = `mk-${name}-${String(number).padStart(3, '0')}-${random.between(0, 0xff_ff).toString(16).padStart(4, '0')}`;
  if (random.chance(slow)) return { marker, kind: 'slow', chunks: 60, delayMs: 100 };
  const kinds: TurnKind[] = ['say', 'say', 'say', 'say', 'read', 'note', 'both', isAdmin ? 'file' : 'note'];
  return { marker, kind: random.pick(kinds), chunks: random.between(4, 16), delayMs: random.between(20, 60) };
}

function planBursts(random: SeededRandom, requests: readonly TurnRequest[], { overMs, burst }: LoadSize): PlannedBurst[] {
  const bursts: TurnRequest[][] = [];
  for (let at = 0; at < requests.length;) {
    const length = random.between(1, burst * 2 - 1);
    bursts.push(requests.slice(at, at + length));
    at += length;
  }
  const starts = bursts.map(() => random.between(0, overMs)).toSorted((left, right) => left - right);
  return bursts.map((turns, index) => ({ atMs: starts[index] ?? 0, turns }));
}
