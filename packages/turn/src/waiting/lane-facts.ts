import type { Redis } from 'ioredis';
import { keyOf, type Lane } from '../keys.ts';

/** What Redis has of a lane, read without a lock: it may have moved on. */
export interface LaneFacts extends Lane {
  /** Turns that have not ended, the running one included. */
  readonly length: number;
  /** The first of them. */
  readonly first: readonly string[];
  readonly agent: string;
  readonly depth: string;
  /** The turn of the last lease, and until when it is leased, in service time; 0: given back. */
  readonly leased: string | undefined;
  readonly untilMs: number;
  /** Wake-ups that were sent since the last lease. */
  readonly woken: number;
}

/** Lanes that one round trip reads: Redis serves others in between. */
const LANES_AT_ONCE = 250;

export function toLane(member: string): Lane {
  const slash = member.indexOf('/');
  return { tenantId: member.slice(0, slash), sessionId: member.slice(slash + 1) };
}

/** `firstTurns`: how many turns of each lane are named. Lanes without turns are left out. */
export async function readLanes(redis: Redis, lanes: readonly Lane[], firstTurns = 2): Promise<LaneFacts[]> {
  const found: LaneFacts[] = [];
  for (let start = 0; start < lanes.length; start += LANES_AT_ONCE) {
    const some = lanes.slice(start, start + LANES_AT_ONCE);
    const facts = await Promise.all(
      some.map(async (lane) =>
        Promise.all([
          redis.lrange(keyOf.lane(lane), 0, firstTurns - 1),
          redis.llen(keyOf.lane(lane)),
          redis.hmget(keyOf.lease(lane), 'agent', 'depth', 'turn', 'until', 'woken'),
        ]),
      ),
    );
    for (const [index, [first, length, [agent, depth, leased, until, woken]]] of facts.entries()) {
      const lane = some[index];
      if (lane === undefined || first.length === 0) continue;
      const lease = { leased: leased ?? undefined, untilMs: Number(until ?? 0), woken: Number(woken ?? 0) };
      found.push({ ...lane, length, first, agent: agent ?? '', depth: depth ?? '0', ...lease });
    }
  }
  return found;
}

/** A tenant's pool at a depth (lua/lanes.lua). */
export function toPool({ tenantId, depth }: Pick<LaneFacts, 'tenantId' | 'depth'>): string {
  return depth === '0' ? tenantId : `${tenantId}@${depth}`;
}

/** Service time as the scripts compute it (lua/clock.lua), and the time for people. */
export async function readClock(redis: Redis): Promise<{ readonly nowMs: number; readonly wallMs: number }> {
  const [[seconds, micros], [last, shift]] = await Promise.all([redis.time(), redis.hmget(keyOf.clock, 'last', 'shift')]);
  const wallMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  if (last == null) return { nowMs: wallMs, wallMs };
  const lastMs = Number(last);
  return { nowMs: Math.min(Math.max(wallMs + Number(shift ?? 0), lastMs), lastMs + CLOCK_GAP_MS), wallMs };
}

/** As in lua/clock.lua. */
const CLOCK_GAP_MS = 2500;
