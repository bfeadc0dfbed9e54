import type { Redis } from 'ioredis';
import { askSlots, isFirstSlot, RedisScript, findSlot, listSlots } from '@concierge/runtime';
import { limits, TurnStatus, type AcceptedTurn, type TurnInput } from '@concierge/contract';
import { z } from 'zod';
import { keyOf, laneMember, queuePrefix, type Lane } from '../keys.ts';
import type { StreamWrite } from '../streams/stream-entry.ts';
import type { AcceptanceReader } from '../streams/turn-follower.ts';
import { keptWakeups, sentByScripts, type TakenWakeup, type Wakeup, type WakeupQueue } from './wakeup-queue.ts';

const scripts = {
  accept: new RedisScript(new URL('../lua/accept.lua', import.meta.url)),
  lease: new RedisScript(new URL('../lua/lease.lua', import.meta.url)),
  append: new RedisScript(new URL('../lua/append.lua', import.meta.url)),
  finish: new RedisScript(new URL('../lua/finish.lua', import.meta.url)),
  release: new RedisScript(new URL('../lua/release.lua', import.meta.url)),
  renew: new RedisScript(new URL('../lua/renew.lua', import.meta.url)),
  sweep: new RedisScript(new URL('../lua/sweep.lua', import.meta.url)),
  open: new RedisScript(new URL('../lua/open.lua', import.meta.url)),
  cancel: new RedisScript(new URL('../lua/cancel.lua', import.meta.url)),
  heartbeat: new RedisScript(new URL('../lua/heartbeat.lua', import.meta.url)),
  findDue: new RedisScript(new URL('../lua/due-lanes.lua', import.meta.url)),
  order: new RedisScript(new URL('../lua/order.lua', import.meta.url)),
  readiness: new RedisScript(new URL('../lua/readiness.lua', import.meta.url)),
};

type LaneScript = Exclude<keyof typeof scripts, 'append'>;

/** How long a wake-up may stay unanswered before the reconciler sends another. */
const FIRST_WAIT_MS = 2000;
/**
 * A worker that has not renewed its leases for this long has lost them: two renewals in a row may fail or hang, and the
 * third still comes in time.
 */
export const LEASE_MS = 4000;
export const RENEW_EVERY_MS = 1000;
const WORKER_GONE_MS = 10_000;
const DUE_AT_ONCE = 500;

export interface Lease extends Lane {
  readonly turnId: string;
  readonly epoch: string;
  /** Starts since the turn last finished a step, this one included. */
  readonly starts: number;
  readonly attempt: number;
  /** Redis came back empty while this turn was on its way: what was streamed before is gone. */
  readonly restored: boolean;
  /** The turn was found on disk without a lane: it may have begun before Redis was emptied. */
  readonly orphan: boolean;
  readonly cancelled: boolean;
  /** For display: by Redis' clock. */
  readonly startedAtMs: number;
  /** Time since the turn's first start, when this lease was given. */
  readonly ageMs: number;
  /**
   * The first epoch of the turn after Redis was started again: entries streamed before may be lost, in part or without
   * a trace. Null when the Redis that accepted the turn still runs.
   */
  readonly cutEpoch: string | null;
  /** The turn has crashed so often that this is its last start, whatever steps it finishes. */
  readonly isLastStart: boolean;
  /** The turn as its inbox file would have it; undefined when it has one. */
  readonly logged: string | undefined;
  /** Completed together with the turn. */
  readonly wakeup?: TakenWakeup | undefined;
}

/** A lane that a wake-up names, in the queue of its depth. */
export interface WokenLane extends Lane {
  readonly depth: number;
  readonly wakeup?: TakenWakeup;
}

export type EnqueueOutcome =
  | {
      readonly kind: 'exists';
      readonly state: TurnStatus;
      readonly requestHash: string;
      readonly sessionId: string;
      /** The log that it was accepted in, and as below, when it was enqueued; undefined for one that had a file. */
      readonly logged: { readonly logId: string; readonly isUnclear: boolean } | undefined;
    }
  | { readonly kind: 'busy' }
  | { readonly kind: 'full' }
  | {
      readonly kind: 'enqueued';
      readonly headTurnId: string;
      readonly waitingBefore: number;
      /** When the debounced lane is due; null: the lane is not debounced. */
      readonly dueInMs: number | null;
      /** When Redis loses the turn, times of acceptance do not determine its place: it needs a number on disk. */
      readonly isUnclear: boolean;
    };

export type LeaseAnswer =
  | { readonly kind: 'idle'; readonly wakeups: readonly Wakeup[] }
  | { readonly kind: 'held' }
  /**
   * Not leased: it is the turn's last start, and the worker must ask again when the turn would run alone. `voids`:
   * deaths that could not be attributed to a turn.
   */
  | { readonly kind: 'alone'; readonly turnId: string; readonly voids: number }
  | { readonly kind: 'leased'; readonly lease: Lease };

export interface RestoreEnd {
  readonly runId: string;
  readonly restore: string;
  readonly generation: number;
}

export interface DueLanes {
  readonly wakeups: readonly Wakeup[];
  /** Time until the next lane is due, which may be 0 when there were many; null: no lane is debounced. */
  readonly nextInMs: number | null;
}

export interface Renewed {
  readonly lost: readonly Lease[];
  readonly cancelled: readonly Lease[];
  /** A lane waits for another wake-up (`sweep`): that of a dead worker, perhaps. */
  readonly isLaneDue: boolean;
}

export interface TurnEnding {
  /** The payload for live readers. */
  readonly payload: string;
  readonly state: TurnStatus;
  /** Turns behind it that were answered with it: they do not wait in a line again. */
  readonly answered?: readonly string[] | undefined;
}

/**
 * The outcome of a write. `lost`: the lease belongs to another. `cut`: the stream lacks entries that were written
 * before. Nothing was written then. `entries`: in the stream, now.
 */
export type Appended = { readonly kind: 'written'; readonly entries: number } | { readonly kind: 'lost' | 'cut' };

/** Epochs of one generation; what was drawn before there were generations is below the first. */
const EPOCHS_OF_GENERATION = 1e9;
const FIRST_GENERATION = 2000;

function entryArguments({ before, entries }: StreamWrite): (string | number)[] {
  return [before ?? -1, ...entries.flatMap(({ seq, type, json }) => [seq, type, json])];
}

/** A depth beyond the bound shares the slots of the deepest. */
function readDepth({ grant }: Pick<AcceptedTurn, 'grant'>): number {
  return Math.min(grant?.depth ?? 0, limits.subagentDepthMax);
}

/** Collected turns are answered together, so more of them may wait. */
export function mayWait(busy: TurnInput['busy']): number {
  return busy === 'collect' ? limits.collectMaxWaiting : limits.laneMaxWaiting;
}

export interface EnqueueOptions {
  readonly busy: TurnInput['busy'];
  /** Only with `collect`. */
  readonly debounceMs?: number | undefined;
  /**
   * `accepted`: the call of an endpoint or channel. `orphan`: found on disk by the reconciler. `emptied`: the same,
   * after Redis lost everything.
   */
  readonly found: 'accepted' | 'orphan' | 'emptied';
  readonly cancelled?: boolean;
  /** Only for `accepted`: the write-ahead log that has the turn, and the turn, which has no inbox file yet. */
  readonly logged?: { readonly logId: string; readonly content: string } | undefined;
}

/**
 * Lanes, shares and leases: which turn may run when. Every method is one atomic script in a tenant's slot, or in each.
 * A lane is empty → waiting in its tenant's line → admitted (a wake-up is sent) → leased → empty or back to the line.
 * Before it waits in the line, a lane whose first turn collects may be debounced.
 * Wake-ups are in the first slot: what a script of another admits is sent after it, and repeated where it got lost.
 */
export class Lanes {
  readonly #redis: Redis;
  readonly #wakeupQueue: Pick<WakeupQueue, 'wake'> | undefined;
  /** Set once, by the reader. */
  reader: AcceptanceReader | undefined;

  /** `wakeupQueue`: not needed where there is one slot. */
  constructor(redis: Redis, wakeupQueue?: Pick<WakeupQueue, 'wake'>) {
    this.#redis = redis;
    this.#wakeupQueue = wakeupQueue;
  }

  async enqueue(turn: AcceptedTurn, options: EnqueueOptions): Promise<EnqueueOutcome> {
    const sessionEvent = JSON.stringify({ contact_id: turn.sessionId, turnId: turn.turnId });
    const reader = options.found === 'accepted' ? this.reader : undefined;
    const told = { sessionEvent, reader: reader?.expect(turn, sessionEvent) ?? '' };
    let outcome: EnqueueOutcome | undefined;
    try {
      outcome = await this.#enqueue(turn, options, told);
      return outcome;
    } finally {
      if (outcome?.kind !== 'enqueued') reader?.forget(turn.turnId);
    }
  }

  async #enqueue(turn: AcceptedTurn, options: EnqueueOptions, told: Record<'sessionEvent' | 'reader', string>): Promise<EnqueueOutcome> {
    const { busy, found, cancelled = false, debounceMs = 0, logged } = options;
    const { turnId, tenantId, sessionId, acceptedAtMs, requestHash, agent } = turn;
    const facts = { turnId, tenantId, sessionId, acceptedAtMs, requestHash, agent, keyId: turn.keyId ?? '' };
    const rules = { busy, found, maxWaiting: mayWait(busy), maxLine: limits.tenantMaxWaiting };
    const given = {
      ...facts,
      ...rules,
      ...told,
      depth: readDepth(turn),
      collects: turn.collects === true,
      cancelled,
      debounceMs: busy === 'collect' ? debounceMs : 0,
      log: logged?.logId ?? '',
      body: logged?.content ?? '',
      ...this.#sendsIn(tenantId),
    };
    const reply = EnqueuedReply.parse(await this.#run('accept', given));
    if (reply[0] === 'enqueued') this.#wakeLater(tenantId, reply[5]);
    return toEnqueueOutcome(reply);
  }

  /** `depth`: the depth of the wake-up that is answered. `alone`: no other turn of the worker is unproven. */
  async lease(lane: WokenLane, workerId: string, { alone = false } = {}): Promise<LeaseAnswer> {
    const { tenantId, sessionId, depth, wakeup } = lane;
    const rules = { leaseMs: LEASE_MS, maxStarts: limits.turnMaxStarts, maxCrashes: limits.turnMaxCrashes };
    const given = { tenantId, sessionId, workerId, depth, alone, ...rules };
    const reply = LeaseReply.parse(await this.#run('lease', given));
    if (reply[0] === 'idle') return { kind: 'idle', wakeups: toWakeups(tenantId, reply[1]) };
    if (reply[0] === 'held') return { kind: 'held' };
    if (reply[0] === 'alone') return { kind: 'alone', turnId: reply[1], voids: reply[2] };
    return { kind: 'leased', lease: { tenantId, sessionId, ...readLease(reply), wakeup } };
  }

  async append(lease: Lease, write: StreamWrite, live: { readonly payload: string; readonly progress: boolean }): Promise<Appended> {
    const facts = [laneMember(lease), lease.turnId, lease.epoch, live.payload, live.progress ? '1' : '0'];
    const reply = await scripts.append.run(findSlot(this.#redis, lease.tenantId), [queuePrefix], [...facts, ...entryArguments(write)]);
    const entries = AppendReply.parse(reply);
    if (entries > 0) return { kind: 'written', entries };
    return { kind: entries === 0 ? 'lost' : 'cut' };
  }

  /** Announces the end. The wake-up of the lane that may run now is sent with it. */
  async finish(lease: Lease, write: StreamWrite, end: TurnEnding): Promise<Finished> {
    const { tenantId, sessionId, turnId, epoch, wakeup } = lease;
    const times = { streamTtlSeconds: limits.streamTtlSeconds, recordTtlSeconds: limits.idempotencyTtlSeconds };
    const written = { before: write.before ?? -1, entries: write.entries };
    const given = { tenantId, sessionId, turnId, epoch, ...end, answered: end.answered ?? [], ...written, ...times };
    const sends = this.#sendsIn(tenantId);
    const completed = sends.sends === undefined ? undefined : wakeup;
    const reply = FinishReply.parse(await this.#run('finish', { ...given, wakeup: completed, keptWakeups, ...sends }));
    if (typeof reply !== 'string') {
      this.#wakeLater(tenantId, reply);
      return 'finished';
    }
    if (reply === 'finished' && completed !== undefined) completed.isCompleted = true;
    return reply;
  }

  /**
   * Releases the turn for another start. With a wait, the reconciler sends the wake-up after it. A charged start counts
   * towards the limit of starts.
   */
  async release(lease: Lease, { waitMs, charged }: { readonly waitMs: number; readonly charged: boolean }): Promise<Wakeup[]> {
    const { tenantId, sessionId, epoch } = lease;
    const reply = await this.#run('release', { tenantId, sessionId, epoch, waitMs, charged });
    return toWakeups(tenantId, ReleaseReply.parse(reply));
  }

  /** The same leases, by their slots: one that is away keeps no lease of another from its renewal. */
  bySlot(leases: readonly Lease[]): Iterable<readonly [Redis, readonly Lease[]]> {
    return Map.groupBy(leases, ({ tenantId }) => findSlot(this.#redis, tenantId));
  }

  /** Of one slot. */
  async renew(leases: readonly Lease[]): Promise<Renewed> {
    const [first] = leases;
    if (first === undefined) return { lost: [], cancelled: [], isLaneDue: false };
    const given = leases.map((lease) => ({ member: laneMember(lease), epoch: lease.epoch, turnId: lease.turnId }));
    const [lost, cancelled, due] = RenewReply.parse(
      await this.#runIn(findSlot(this.#redis, first.tenantId), 'renew', { leaseMs: LEASE_MS, leases: given }),
    );
    return {
      lost: leases.filter((lease) => lost.includes(laneMember(lease))),
      cancelled: leases.filter((lease) => cancelled.includes(lease.turnId)),
      isLaneDue: due > 0,
    };
  }

  /** Whether a slot has all that was accepted, and the run id of its Redis. A reconciler notes the time with it. */
  async readiness({ notesTime = false, slot = this.#redis } = {}): Promise<{ readonly isReady: boolean; readonly runId: string }> {
    const [ready, runId] = ReadinessReply.parse(await this.#runIn(slot, 'readiness', { notesTime }));
    return { isReady: ready === 1, runId };
  }

  /** For a living worker that has lost this lease: the turn is no longer among those that may kill the worker. */
  async outlive(lease: Lease, workerId: string): Promise<void> {
    await findSlot(this.#redis, lease.tenantId).srem(keyOf.unproven(workerId), laneMember(lease));
  }

  /**
   * Before every inbox is scanned for the Redis of a slot. `restore`: names this scan; lost with what it enqueues when
   * Redis is emptied once more.
   */
  async beginRestore(restore: string, slot = this.#redis): Promise<void> {
    await slot.set(keyOf.restore, restore);
  }

  /**
   * Every inbox has been scanned for a slot's Redis: turns run from now on. `generation`: above all given before.
   * @returns the wake-ups to send; undefined when Redis lost what was enqueued, and the scan must begin anew
   */
  async open({ runId, restore, generation }: RestoreEnd, slot = this.#redis): Promise<Wakeup[] | undefined> {
    const epoch = String((FIRST_GENERATION + generation) * EPOCHS_OF_GENERATION);
    const [isReady, found] = OpenReply.parse(await this.#runIn(slot, 'open', { runId, restore, epoch }));
    return isReady === 1 ? found.flatMap(([tenantId, wake]) => toWakeups(tenantId, [wake])) : undefined;
  }

  /**
   * Puts turns with a number behind all others, in their order. `own`: the caller's lease of the head, given up when
   * that is no longer the head.
   * @returns whether it was
   */
  async order({ tenantId, sessionId }: Lane, numbered: readonly string[], own?: Lease): Promise<{ moved: boolean; wakeups: Wakeup[] }> {
    const given = { tenantId, sessionId, numbered, epoch: own?.epoch ?? '' };
    const [moved, wakeups] = OrderReply.parse(await this.#run('order', given));
    return { moved: moved === 1, wakeups: toWakeups(tenantId, wakeups) };
  }

  /** Of one slot. */
  async sweep(limit: number, slot = this.#redis): Promise<Wakeup[]> {
    return readWakeups(await this.#runIn(slot, 'sweep', { limit }));
  }

  /** @returns the wake-ups to send: a lane that was debounced with the turn runs now */
  async cancel({ tenantId, turnId }: Pick<AcceptedTurn, 'tenantId' | 'turnId'>): Promise<Wakeup[]> {
    return readWakeups(await this.#runIn(findSlot(this.#redis, tenantId), 'cancel', { turnId }));
  }

  /** Ends the debounce of lanes that are due, in a slot or in all of them. */
  async findDue(slot?: Redis): Promise<DueLanes> {
    const ask = async (one: Redis): Promise<DueLanes> => {
      const [found, nextIn] = DueReply.parse(await this.#runIn(one, 'findDue', { limit: DUE_AT_ONCE }));
      return { wakeups: found.flatMap(([tenantId, wake]) => toWakeups(tenantId, [wake])), nextInMs: nextIn < 0 ? null : nextIn };
    };
    if (slot !== undefined) return await ask(slot);
    const answers = await askSlots(this.#redis, ask);
    const nextInMs = answers.flatMap(({ nextInMs: next }) => next ?? []);
    return { wakeups: answers.flatMap(({ wakeups }) => wakeups), nextInMs: nextInMs.length === 0 ? null : Math.min(...nextInMs) };
  }

  /**
   * Ids of the turns that wait behind the running one, in their order. None when the lease has passed on, as far as can
   * be seen.
   */
  async waitingBehind({ tenantId, sessionId, turnId }: Lease, atMost: number): Promise<string[]> {
    const [head, ...others] = await findSlot(this.#redis, tenantId).lrange(keyOf.lane({ tenantId, sessionId }), 0, atMost);
    return head === turnId ? others : [];
  }

  async heartbeat(worker: {
    readonly id: string;
    readonly share: number;
    readonly facts: object;
    readonly leaving: boolean;
  }): Promise<void> {
    const { id: workerId, share, facts, leaving } = worker;
    const given = { workerId, share, facts: JSON.stringify(facts), leaving, goneMs: WORKER_GONE_MS };
    const [first = this.#redis, ...others] = listSlots(this.#redis);
    for (const slot of others) this.#runIn(slot, 'heartbeat', given).catch(() => undefined);
    await this.#runIn(first, 'heartbeat', given);
  }

  /** How wake-ups are sent from a script: not at all from one that runs in another slot than the queue. */
  #sendsIn(tenantId: string): { readonly sends?: typeof sentByScripts } {
    return isFirstSlot(findSlot(this.#redis, tenantId)) ? { sends: sentByScripts } : {};
  }

  #wakeLater(tenantId: string, wakeups: Parameters<typeof toWakeups>[1] = []): void {
    if (wakeups.length > 0) this.#wakeupQueue?.wake(toWakeups(tenantId, wakeups)).catch(() => undefined);
  }

  async #run<Given extends Pick<Lane, 'tenantId'>>(name: LaneScript, given: Given): Promise<unknown> {
    return await this.#runIn(findSlot(this.#redis, given.tenantId), name, given);
  }

  async #runIn(slot: Redis, name: LaneScript, given: object): Promise<unknown> {
    return await scripts[name].run(slot, [queuePrefix], [JSON.stringify({ ...given, firstWaitMs: FIRST_WAIT_MS })]);
  }
}

const WakeupReply = z.tuple([z.string(), z.string(), z.number(), z.number(), z.number()]);
/** Tried one after the other: first what most turns get, with the wake-ups to send where the script cannot. */
const EnqueuedReply = z.union([
  z.tuple([z.literal('enqueued'), z.string(), z.number(), z.number(), z.enum(['0', '1']), z.array(WakeupReply).optional()]),
  z.tuple([z.literal('exists'), TurnStatus, z.string(), z.string(), z.string(), z.enum(['0', '1'])]),
  z.tuple([z.literal('busy')]),
  z.tuple([z.literal('full')]),
]);
const LeasedReply = z.tuple([
  z.literal('leased'),
  z.string(),
  z.string(),
  z.number(),
  z.number(),
  z.string(),
  z.string(),
  z.string(),
  z.number(),
  z.string(),
  z.enum(['0', '1']),
  z.string(),
]);
const LeaseReply = z.union([
  LeasedReply,
  z.tuple([z.literal('idle'), z.array(WakeupReply)]),
  z.tuple([z.literal('held')]),
  z.tuple([z.literal('alone'), z.string(), z.number()]),
]);
const AppendReply = z.number();
const ReleaseReply = z.array(WakeupReply);
const RenewReply = z.tuple([z.array(z.string()), z.array(z.string()), z.number()]);
const FoundReply = z.array(z.tuple([z.string(), WakeupReply]));
const DueReply = z.tuple([FoundReply, z.number()]);
const OpenReply = z.tuple([z.number(), FoundReply]);
const Finished = z.enum(['finished', 'lost', 'cut']);
/**
 * `lost`: the lease belongs to another. `cut`: the stream lacks entries that were written before. Nothing was written
 * then. A list: finished, and the wake-ups to send where the script cannot.
 */
const FinishReply = z.union([Finished, z.array(WakeupReply)]);
export type Finished = z.infer<typeof Finished>;
const OrderReply = z.tuple([z.number(), z.array(WakeupReply)]);
const ReadinessReply = z.tuple([z.number(), z.string()]);

function toWakeups(tenantId: string, replies: readonly z.infer<typeof WakeupReply>[]): Wakeup[] {
  return replies.map(([sessionId, turnId, backlog, at, depth]) => ({ tenantId, sessionId, turnId, backlog, at, depth }));
}

function readWakeups(reply: unknown): Wakeup[] {
  return FoundReply.parse(reply).flatMap(([tenantId, wake]) => toWakeups(tenantId, [wake]));
}

function toEnqueueOutcome(reply: z.infer<typeof EnqueuedReply>): EnqueueOutcome {
  switch (reply[0]) {
    case 'exists': {
      const [, state, requestHash, sessionId, logId, isUnclear] = reply;
      const logged = logId === '' ? undefined : { logId, isUnclear: isUnclear === '1' };
      return { kind: 'exists', state, requestHash, sessionId, logged };
    }
    case 'busy':
    case 'full': {
      return { kind: reply[0] };
    }
    case 'enqueued': {
      const [kind, headTurnId, waitingBefore, dueIn, unclear] = reply;
      return { kind, headTurnId, waitingBefore, dueInMs: dueIn < 0 ? null : dueIn, isUnclear: unclear === '1' };
    }
  }
}

/** What a lease says of its turn. */
function readLease(reply: z.infer<typeof LeasedReply>) {
  const [, turnId, epoch, starts, attempt, restored, cancelled, startedAt, ageMs, cutEpoch, last, logged] = reply;
  return {
    turnId,
    epoch,
    starts,
    attempt,
    restored: restored === '1',
    orphan: restored === '2',
    cancelled: cancelled === '1',
    startedAtMs: Number(startedAt),
    ageMs,
    cutEpoch: cutEpoch === '' ? null : cutEpoch,
    isLastStart: last === '1',
    logged: logged === '' ? undefined : logged,
  };
}
