import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript, type ScriptReply } from '@concierge/runtime';
import { limits, TurnStatus, type AcceptedTurn, type TurnInput } from '@concierge/contract';
import { keyOf, laneMember, queuePrefix, type Lane } from './keys.ts';

const scripts = {
  accept: new RedisScript(new URL('lua/accept.lua', import.meta.url)),
  lease: new RedisScript(new URL('lua/lease.lua', import.meta.url)),
  append: new RedisScript(new URL('lua/append.lua', import.meta.url)),
  finish: new RedisScript(new URL('lua/finish.lua', import.meta.url)),
  release: new RedisScript(new URL('lua/release.lua', import.meta.url)),
  renew: new RedisScript(new URL('lua/renew.lua', import.meta.url)),
  sweep: new RedisScript(new URL('lua/sweep.lua', import.meta.url)),
  open: new RedisScript(new URL('lua/open.lua', import.meta.url)),
  cancel: new RedisScript(new URL('lua/cancel.lua', import.meta.url)),
  heartbeat: new RedisScript(new URL('lua/heartbeat.lua', import.meta.url)),
  ripen: new RedisScript(new URL('lua/ripen.lua', import.meta.url)),
};

/** How long a doorbell may stay unanswered before the sweeper rings again. */
const FIRST_WAIT_MS = 2000;
/** A worker that has not renewed for this long has lost its sessions. */
export const LEASE_MS = 8000;
export const RENEW_EVERY_MS = 2000;
const WORKER_GONE_MS = 10_000;
const RIPE_AT_ONCE = 500;

/** A lane that may run now: somebody has to ring for it. */
export interface Ring extends Lane {
  /** Head of the lane, for the dashboards. */
  readonly turnId: string;
  /** Admitted lanes of the tenant at this depth: the more it has, the later it is served. */
  readonly backlog: number;
  readonly at: number;
  /** How many turns stand above the head: who answers the bell has slots for each depth (see admit.lua). */
  readonly depth: number;
}

export type Placed =
  | { readonly kind: 'exists'; readonly state: TurnStatus; readonly requestHash: string; readonly sessionId: string }
  | { readonly kind: 'busy' }
  | { readonly kind: 'full' }
  | {
      readonly kind: 'laid';
      readonly headTurnId: string;
      readonly waitingBefore: number;
      readonly rings: readonly Ring[];
      /** The lane is held back, and may be let go then; null: it is not. */
      readonly ripeInMs: number | null;
    };

export interface Lease extends Lane {
  readonly turnId: string;
  readonly epoch: string;
  /** Starts since the turn last finished a step, this one included. */
  readonly starts: number;
  readonly attempt: number;
  /** Redis came back empty while this turn was on its way: what was streamed before is gone. */
  readonly relaid: boolean;
  /** It was found on disk without a lane: it may have begun in an earlier life of Redis. */
  readonly orphan: boolean;
  readonly cancelled: boolean;
  readonly startedAtMs: number;
}

export type LeaseAnswer =
  | { readonly kind: 'idle'; readonly rings: readonly Ring[] }
  | { readonly kind: 'held' }
  | { readonly kind: 'leased'; readonly lease: Lease };

export interface Ripened {
  readonly rings: readonly Ring[];
  /** Until the next lane ripens, which may be at once when there were many; null: none is held back. */
  readonly nextInMs: number | null;
}

export interface Renewed {
  readonly lost: readonly Lease[];
  readonly cancelled: readonly Lease[];
}

export interface TurnEnding {
  /** For live readers. */
  readonly payload: string;
  readonly state: TurnStatus;
  /** Turns behind it that were answered with it: they stand in no line again. */
  readonly answered?: readonly string[] | undefined;
}

/** One stream entry: its number within the epoch, its type, its data as JSON. */
export interface EntryToWrite {
  readonly seq: number;
  readonly type: string;
  readonly json: string;
}

const RingReply = z.tuple([z.string(), z.string(), z.number(), z.number(), z.number()]);
/** Tried one after the other: first what most turns get. */
const PlacedReply = z.union([
  z.tuple([z.literal('laid'), z.string(), z.number(), z.array(RingReply), z.number()]),
  z.tuple([z.literal('exists'), TurnStatus, z.string(), z.string()]),
  z.tuple([z.literal('busy')]),
  z.tuple([z.literal('full')]),
]);
const LeaseReply = z.union([
  z.tuple([z.literal('leased'), z.string(), z.string(), z.number(), z.number(), z.string(), z.string(), z.string()]),
  z.tuple([z.literal('idle'), z.array(RingReply)]),
  z.tuple([z.literal('held')]),
]);
const RenewReply = z.tuple([z.array(z.string()), z.array(z.string())]);
const FoundReply = z.array(z.tuple([z.string(), RingReply]));
const RipenReply = z.tuple([FoundReply, z.number()]);
const FinishReply = z.union([z.tuple([z.literal('finished'), z.array(RingReply)]), z.tuple([z.literal('lost')])]);

function ringsOf(accountId: string, replies: readonly z.infer<typeof RingReply>[]): Ring[] {
  return replies.map(([sessionId, turnId, backlog, at, depth]) => ({ accountId, sessionId, turnId, backlog, at, depth }));
}

function foundRings(reply: ScriptReply): Ring[] {
  return FoundReply.parse(reply).flatMap(([accountId, ring]) => ringsOf(accountId, [ring]));
}

function entryArguments(entries: readonly EntryToWrite[]): (string | number)[] {
  return entries.flatMap(({ seq, type, json }) => [seq, type, json]);
}

/** A depth beyond the bound shares the slots of the deepest. */
function depthOf({ grant }: Pick<AcceptedTurn, 'grant'>): number {
  return Math.min(grant?.depth ?? 0, limits.subagentDepthMax);
}

/** Those that collect are answered together, so more of them may wait. */
export function mayWait(busy: TurnInput['busy']): number {
  return busy === 'collect' ? limits.collectMaxWaiting : limits.laneMaxWaiting;
}

export interface PlaceOptions {
  readonly busy: TurnInput['busy'];
  /** Only with `collect`. */
  readonly holdMs?: number | undefined;
  /** `accepted`: a surface's own call. `orphan`: found on disk by the sweeper. `emptied`: the same, after Redis lost everything. */
  readonly found: 'accepted' | 'orphan' | 'emptied';
  readonly cancelled?: boolean;
}

/**
 * Lanes, shares and leases: who may run when. Every method is one atomic script.
 * A lane is empty → waiting in its tenant's line → admitted (a doorbell rings) → leased → empty or back to the line.
 * Before it waits in the line, one whose first turn collects may be held back for more of them.
 */
export class Lanes {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async place(turn: AcceptedTurn, { busy, found, cancelled = false, holdMs = 0 }: PlaceOptions): Promise<Placed> {
    const session = JSON.stringify({ contact_id: turn.sessionId, turnId: turn.turnId });
    const facts = [turn.turnId, turn.accountId, turn.sessionId, turn.acceptedAtMs, session, turn.requestHash];
    const rules = [busy, mayWait(busy), found, turn.keyId ?? '', turn.agent, FIRST_WAIT_MS, cancelled ? '1' : '0', depthOf(turn)];
    const collecting = [busy === 'collect' ? holdMs : 0, turn.collects === true ? '1' : '0', limits.tenantMaxWaiting];
    const reply = PlacedReply.parse(await this.#run('accept', [...facts, ...rules, ...collecting]));
    switch (reply[0]) {
      case 'exists': {
        return { kind: 'exists', state: reply[1], requestHash: reply[2], sessionId: reply[3] };
      }
      case 'busy':
      case 'full': {
        return { kind: reply[0] };
      }
      case 'laid': {
        const [, headTurnId, waitingBefore, rings, ripeIn] = reply;
        return { kind: 'laid', headTurnId, waitingBefore, rings: ringsOf(turn.accountId, rings), ripeInMs: ripeIn < 0 ? null : ripeIn };
      }
    }
  }

  /** `depth`: of the bell that is answered. */
  async lease(lane: Lane & { readonly depth: number }, workerId: string): Promise<LeaseAnswer> {
    const { accountId, sessionId, depth } = lane;
    const reply = LeaseReply.parse(await this.#run('lease', [accountId, sessionId, workerId, LEASE_MS, FIRST_WAIT_MS, depth]));
    if (reply[0] === 'idle') return { kind: 'idle', rings: ringsOf(accountId, reply[1]) };
    if (reply[0] === 'held') return { kind: 'held' };
    const [, turnId, epoch, starts, attempt, relaid, cancelled, startedAt] = reply;
    const facts = {
      turnId,
      epoch,
      starts,
      attempt,
      relaid: relaid === '1',
      orphan: relaid === '2',
      cancelled: cancelled === '1',
      startedAtMs: Number(startedAt),
    };
    return { kind: 'leased', lease: { accountId, sessionId, ...facts } };
  }

  /** @returns false when the lease belongs to another: nothing was written */
  async append(
    lease: Lease,
    entries: readonly EntryToWrite[],
    live: { readonly payload: string; readonly progress: boolean },
  ): Promise<boolean> {
    const facts = [laneMember(lease), lease.turnId, lease.epoch, live.payload, live.progress ? '1' : '0'];
    return (await this.#run('append', [...facts, ...entryArguments(entries)])) === 1;
  }

  /** @returns the rings that follow from it, or null when the lease belongs to another */
  async finish(lease: Lease, entries: readonly EntryToWrite[], end: TurnEnding): Promise<Ring[] | null> {
    const facts = [lease.accountId, lease.sessionId, lease.turnId, lease.epoch, end.payload, end.state];
    const times = [limits.streamTtlSeconds, limits.idempotencyTtlSeconds, FIRST_WAIT_MS];
    const answered = `,${(end.answered ?? []).join(',')},`;
    const reply = FinishReply.parse(await this.#run('finish', [...facts, ...times, answered, ...entryArguments(entries)]));
    return reply[0] === 'lost' ? null : ringsOf(lease.accountId, reply[1]);
  }

  /** Hands the turn on. With a wait the sweeper rings after it. A charged start is one of those after which a turn is given up. */
  async release(lease: Lease, { waitMs, charged }: { readonly waitMs: number; readonly charged: boolean }): Promise<Ring[]> {
    const reply = await this.#run('release', [lease.accountId, lease.sessionId, lease.epoch, waitMs, charged ? '1' : '0']);
    return ringsOf(lease.accountId, z.array(RingReply).parse(reply));
  }

  async renew(leases: readonly Lease[]): Promise<Renewed> {
    if (leases.length === 0) return { lost: [], cancelled: [] };
    const facts = leases.flatMap((lease) => [laneMember(lease), lease.epoch, lease.turnId]);
    const [lost, cancelled] = RenewReply.parse(await this.#run('renew', [LEASE_MS, ...facts]));
    return {
      lost: leases.filter((lease) => lost.includes(laneMember(lease))),
      cancelled: leases.filter((lease) => cancelled.includes(lease.turnId)),
    };
  }

  /** Every inbox has been laid: from now on turns run. */
  async open(): Promise<Ring[]> {
    return foundRings(await this.#run('open', [FIRST_WAIT_MS]));
  }

  async sweep(atMost: number): Promise<Ring[]> {
    return foundRings(await this.#run('sweep', [atMost, FIRST_WAIT_MS]));
  }

  /** @returns the rings that follow from it: what was held back with the turn runs now */
  async cancel(turnId: string): Promise<Ring[]> {
    return foundRings(await this.#run('cancel', [turnId, FIRST_WAIT_MS]));
  }

  /** Lets go of the lanes that were held back and whose time has come. */
  async ripen(): Promise<Ripened> {
    const [found, nextIn] = RipenReply.parse(await this.#run('ripen', [RIPE_AT_ONCE, FIRST_WAIT_MS]));
    return { rings: found.flatMap(([accountId, ring]) => ringsOf(accountId, [ring])), nextInMs: nextIn < 0 ? null : nextIn };
  }

  /** Ids of the turns that wait behind the one that runs, in their order. None when the lease has passed on, as far as can be seen. */
  async waitingBehind({ accountId, sessionId, turnId }: Lease, atMost: number): Promise<string[]> {
    const [head, ...others] = await this.#redis.lrange(keyOf.lane({ accountId, sessionId }), 0, atMost);
    return head === turnId ? others : [];
  }

  async heartbeat(worker: {
    readonly id: string;
    readonly share: number;
    readonly facts: object;
    readonly leaving: boolean;
  }): Promise<void> {
    await this.#run('heartbeat', [worker.id, worker.share, WORKER_GONE_MS, JSON.stringify(worker.facts), worker.leaving ? '1' : '0']);
  }

  async #run(name: keyof typeof scripts, args: readonly (string | number)[]): Promise<ScriptReply> {
    return await scripts[name].run(this.#redis, [queuePrefix], args);
  }
}
