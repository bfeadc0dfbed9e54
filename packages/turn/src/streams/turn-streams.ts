import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { AcceptedTurn, TurnInput } from '@concierge/contract';
import { RedisScript, findSlot, handleMessages, listSlots, type Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { isOfReplay, replayTurn } from './replay-turn.ts';
import { TurnFold, type FoldedTurn } from './fold-stream.ts';
import { keyOf, queuePrefix } from '../keys.ts';
import { LEASE_MS, type Lanes } from '../lanes/lanes.ts';
import { TurnFollower, type AcceptanceReader, type FollowedTurn, type FollowerOptions, type FollowSink } from './turn-follower.ts';
import { compareIds, firstEntryId, isTerminal, newestEntry, readEntries, toEvent, type StreamEntry } from './stream-entry.ts';

const join = new RedisScript(new URL('./join.lua', import.meta.url));

const LIVE_PREFIX = `${queuePrefix}:live:`;
/** A subscriber connection that does not answer within this is replaced. */
const PING_EVERY_MS = 5000;
/**
 * Readers are checked for silence as often, in so many parts: 5,000 that read their streams at once need 50 MiB for a
 * moment.
 */
const SILENCE_PARTS = 20;
/** Many turns end at once: one command unsubscribes from all that ended within this time. */
const LEAVE_TOGETHER_MS = 50;
/** Turns whose acceptance is answered with their events. Any other turn has readers seldom. */
const followedAtOnce: ReadonlySet<TurnInput['origin']> = new Set(['api', 'subagent']);
/** Messages that are kept for a reader that is about to follow; who comes later reads the stream. */
const KEPT_MESSAGES = 64;
const KEPT_FOR_MS = 10_000;
/** How often the end of a stream is looked for; less often the longer it takes. */
const END_EVERY_MS = 50;
const END_EVERY_MAX_MS = 500;

/** A turn that is being accepted, and what was published of it before its reader follows. */
interface Expected {
  readonly first: StreamEntry;
  readonly published: string[];
  readonly sinceMs: number;
}

export interface TurnStreamsOptions {
  /** The connection that reads streams. */
  readonly redis: Redis;
  /** A separate connection: it only subscribes. */
  readonly subscriber: Redis;
  /** Of the same process: the turns that it accepts are followed from before they are enqueued. */
  readonly lanes: Pick<Lanes, 'reader'>;
  readonly log: Log;
}

/**
 * Readers of turns: any number on one subscriber connection. The stream is the log, pub/sub carries the same entries
 * live; a reader that sees a gap, reconnects or joins late fills from the stream. What is published of turns that this
 * process has accepted comes on one channel of the process; a reader that joins listens to the turn's own channel.
 */
export class TurnStreams implements AcceptanceReader {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #log: Log;
  readonly #forFollowers: FollowerOptions;
  /** Lists, not sets: most turns have one reader, and a set of one has three times the size of such a list. */
  readonly #followers = new Map<string, readonly TurnFollower[]>();
  readonly #own = `@${randomUUID()}`;
  /** Subscribers on which the channel of this process is subscribed to: one for each slot. */
  readonly #listening = new Set<Redis>();
  readonly #expected = new Map<string, Expected>();
  /** Turns whose own channels are subscribed to, and on which subscriber. */
  readonly #joined = new Map<string, Redis>();
  readonly #ping: NodeJS.Timeout;
  readonly #silence: NodeJS.Timeout;
  /** Readers that have not been checked in this round. */
  #unchecked: Iterator<readonly TurnFollower[]> = this.#followers.values();
  #part = 0;
  /** Turns that are no longer followed and still subscribed to. */
  readonly #left = new Set<string>();
  #leaving: NodeJS.Timeout | undefined;

  constructor({ redis, subscriber, lanes, log }: TurnStreamsOptions) {
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#log = log;
    this.#forFollowers = {
      redis,
      log,
      join: async (followed) => await this.#join(followed),
      replay: async ({ scope, turnId }, after) => await this.#replayLate(scope, turnId, after),
    };
    for (const slot of listSlots(subscriber)) this.#hear(slot);
    lanes.reader = this;
    this.#ping = setInterval(() => {
      void this.#checkSubscriber();
      this.#forgetOld();
    }, PING_EVERY_MS);
    this.#ping.unref();
    this.#silence = setInterval(() => {
      this.#checkSilence();
    }, PING_EVERY_MS / SILENCE_PARTS);
    this.#silence.unref();
  }

  #hear(slot: Redis): void {
    handleMessages(slot, LIVE_PREFIX, (name, payload) => {
      if (name !== this.#own) return this.#pass(name, payload);
      const space = payload.indexOf(' ');
      this.#pass(payload.slice(0, space), payload.slice(space + 1));
    });
    slot.on('close', () => {
      this.#miss(slot);
    });
    slot.on('ready', () => {
      void this.#listen(slot);
      this.#refill(slot);
    });
    if (slot.status === 'ready') void this.#listen(slot);
  }

  get openStreams(): number {
    let open = 0;
    for (const followers of this.#followers.values()) open += followers.length;
    return open;
  }

  expect({ tenantId, turnId, origin }: Pick<AcceptedTurn, 'tenantId' | 'turnId' | 'origin'>, sessionEvent: string): string {
    if (!this.#listening.has(findSlot(this.#subscriber, tenantId)) || !followedAtOnce.has(origin)) return '';
    // The same request twice at once: neither knows what was published for the other.
    if (this.#expected.delete(turnId)) return '';
    const first = { id: firstEntryId, type: 'session', json: sessionEvent };
    this.#expected.set(turnId, { first, published: [], sinceMs: performance.now() });
    return this.#own;
  }

  forget(turnId: string): void {
    this.#expected.delete(turnId);
  }

  /**
   * Follows a turn from `after` (exclusive; null: from the start) to its end. Misses nothing and repeats nothing.
   * @returns a function that stops following
   */
  follow(scope: TenantScope, turnId: string, sink: FollowSink): () => void {
    const follower = new TurnFollower(this.#forFollowers, { scope, turnId }, sink);
    const leave = (): void => {
      follower.close();
      this.#leave(turnId, follower);
    };
    follower.onEnd = leave;
    this.#followers.set(turnId, [...(this.#followers.get(turnId) ?? []), follower]);
    const expected = sink.after === null ? this.#expected.get(turnId) : undefined;
    this.#expected.delete(turnId);
    if (expected === undefined) void follower.fill({ asksDisk: true });
    else follower.begin(expected.first, expected.published);
    return leave;
  }

  /**
   * Whether the turn has ended and a reader that holds the event `after` has seen its end; false while that cannot be
   * determined.
   */
  async isReadToEnd(scope: TenantScope, turnId: string, after: string): Promise<boolean> {
    try {
      const newest = await newestEntry(findSlot(this.#redis, scope.tenantId), turnId);
      if (newest !== null && compareIds(after, newest.id) <= 0) return isTerminal(newest) && after === newest.id;
      // Its last event is none of this stream: of a replay, or the stream has lost its end.
      // The inbox file of a turn that was replayed may be back: when Redis was emptied, all logs are filed.
      const replayed = isOfReplay(after) ? replayTurn(this.#redis, { scope, turnId, after }) : this.#replay(scope, turnId, after);
      return (await replayed)?.length === 0;
    } catch (error) {
      this.#log.debug({ err: error, turnId }, 'cannot determine yet whether a turn has been read to its end');
      return false;
    }
  }

  /** Waits for the end and folds the whole turn. @throws the signal's reason */
  async fold(scope: TenantScope, turnId: string, signal: AbortSignal): Promise<FoldedTurn> {
    signal.throwIfAborted();
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    const leave = this.follow(scope, turnId, { after: null, write: () => undefined, end: resolve });
    const stop = (): void => {
      reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      await ended;
    } finally {
      leave();
      signal.removeEventListener('abort', stop);
    }
    let entries = await readEntries(findSlot(this.#redis, scope.tenantId), turnId, null);
    if (!entries.some(isTerminal)) entries = (await replayTurn(this.#redis, { scope, turnId, after: null })) ?? [];
    const fold = new TurnFold();
    for (const entry of entries) {
      const event = toEvent(entry);
      const folded = event === null ? null : fold.add(event);
      if (folded !== null) return folded;
    }
    throw new Error(`turn ${turnId} has no end`);
  }

  async stop(): Promise<void> {
    clearInterval(this.#ping);
    clearInterval(this.#silence);
    clearTimeout(this.#leaving);
    for (const followers of this.#followers.values()) for (const follower of followers) follower.close();
    this.#followers.clear();
    this.#expected.clear();
    const [first, ...others] = listSlots(this.#subscriber);
    for (const slot of others) slot.disconnect();
    await first?.quit().catch(() => undefined);
  }

  /**
   * Subscribe, wait for the acknowledgement, have messages sent there; then the stream is read, then live: in that
   * order nothing is missed.
   */
  async #join({ scope: { tenantId }, turnId }: FollowedTurn): Promise<boolean> {
    const slot = findSlot(this.#subscriber, tenantId);
    this.#joined.set(turnId, slot);
    await slot.subscribe(keyOf.live(turnId)).catch((error: unknown) => {
      this.#log.warn({ err: error, turnId }, 'cannot subscribe yet');
    });
    return (await join.run(findSlot(this.#redis, tenantId), [queuePrefix], [turnId])) === 1;
  }

  async #listen(slot: Redis): Promise<void> {
    try {
      await slot.subscribe(keyOf.live(this.#own));
      if (slot.status === 'ready') this.#listening.add(slot);
    } catch (error) {
      this.#log.debug({ err: error }, 'cannot listen to accepted turns yet');
    }
  }

  /** What is published now does not arrive: readers that come read the stream. */
  #miss(slot: Redis): void {
    this.#listening.delete(slot);
    this.#expected.clear();
  }

  #forgetOld(): void {
    const oldest = performance.now() - KEPT_FOR_MS;
    for (const [turnId, { sinceMs }] of this.#expected) if (sinceMs < oldest) this.#expected.delete(turnId);
  }

  #leave(turnId: string, follower: TurnFollower): void {
    const followers = this.#followers.get(turnId);
    if (followers?.includes(follower) !== true) return;
    if (followers.length > 1) {
      this.#followers.set(
        turnId,
        followers.filter((other) => other !== follower),
      );
      return;
    }
    this.#followers.delete(turnId);
    if (!this.#joined.has(turnId)) return;
    this.#left.add(turnId);
    this.#leaving ??= setTimeout(() => {
      this.#unsubscribe();
    }, LEAVE_TOGETHER_MS);
  }

  /**
   * Unsubscribes from all turns that were left lately, in one command; a turn that is followed again meanwhile stays.
   */
  #unsubscribe(): void {
    this.#leaving = undefined;
    const gone = [...this.#left].filter((turnId) => !this.#followers.has(turnId));
    this.#left.clear();
    for (const [slot, turnIds] of Map.groupBy(gone, (turnId) => this.#joined.get(turnId) ?? this.#subscriber))
      slot.unsubscribe(...turnIds.map(keyOf.live)).catch(() => undefined);
    for (const turnId of gone) this.#joined.delete(turnId);
  }

  #pass(turnId: string, payload: string): void {
    const followers = this.#followers.get(turnId);
    if (followers !== undefined) for (const follower of followers) follower.receive(payload);
    const expected = this.#expected.get(turnId);
    if (expected === undefined) return;
    expected.published.push(payload);
    if (expected.published.length > KEPT_MESSAGES) this.#expected.delete(turnId);
  }

  #refill(slot: Redis): void {
    for (const followers of this.#followers.values())
      for (const follower of followers) if (findSlot(this.#subscriber, follower.tenantId) === slot) void follower.fill({ asksDisk: true });
  }

  /**
   * Replays a turn that has no inbox file and is in a session: it has ended, whatever state Redis has, and also when
   * its worker has not announced it yet. What is read of a session is on disk.
   */
  async #replay(scope: TenantScope, turnId: string, after: string | null): ReturnType<typeof replayTurn> {
    if (await scope.inbox.hasFile(turnId)) return null;
    return await replayTurn(this.#redis, { scope, turnId, after });
  }

  /**
   * As `#replay`, for a reader: a turn is in its session before its stream ends, which is read on instead then.
   */
  async #replayLate(scope: TenantScope, turnId: string, after: string | null): ReturnType<typeof replayTurn> {
    const replayed = await this.#replay(scope, turnId, after);
    if (replayed !== null) await this.#awaitEnd(scope.tenantId, turnId);
    return replayed;
  }

  /**
   * Until a stream has its end. Before it announces that, a worker waits for the index, for seconds where that is slow,
   * and does what follows from the turn. So it is waited for as long as the turn's lease is renewed, and as long as one
   * lasts where it is not: the turn may have been answered with another one. Not at all where there is no stream, nor
   * for readers that have left.
   */
  async #awaitEnd(tenantId: string, turnId: string): Promise<void> {
    const redis = findSlot(this.#redis, tenantId);
    let until: string | undefined;
    let pauseMs = 0;
    for (let leftMs = LEASE_MS; leftMs > 0 && this.#followers.has(turnId); leftMs -= pauseMs) {
      const newest = await newestEntry(redis, turnId);
      if (newest === null || isTerminal(newest)) return;
      const renewed = await readLeaseEnd(redis, tenantId, turnId);
      if (renewed !== until) leftMs = LEASE_MS;
      until = renewed;
      pauseMs = Math.min(pauseMs + END_EVERY_MS, END_EVERY_MAX_MS);
      await sleep(pauseMs, undefined, { ref: false });
    }
  }

  #checkSilence(): void {
    this.#part = (this.#part + 1) % SILENCE_PARTS;
    if (this.#part === 0) this.#unchecked = this.#followers.values();
    for (let left = Math.ceil(this.#followers.size / SILENCE_PARTS); left > 0; left -= 1) {
      const next = this.#unchecked.next();
      if (next.done === true) return;
      for (const follower of next.value) follower.checkSilence();
    }
  }

  async #checkSubscriber(): Promise<void> {
    if (this.#followers.size === 0) return;
    const checking = listSlots(this.#subscriber).map(async (slot) => {
      if (slot.status !== 'ready') return;
      const late = setTimeout(() => {
        slot.disconnect(true);
      }, PING_EVERY_MS - 500);
      await slot.ping().catch(() => undefined);
      clearTimeout(late);
    });
    await Promise.all(checking);
  }
}

/** When the lease of a running turn ends unless it is renewed; undefined when no worker has it. */
async function readLeaseEnd(redis: Redis, tenantId: string, turnId: string): Promise<string | undefined> {
  const sessionId = await redis.hget(keyOf.turn(turnId), 'session');
  if (sessionId === null) return undefined;
  const [leased, until] = await redis.hmget(keyOf.lease({ tenantId, sessionId }), 'turn', 'until');
  return leased === turnId ? (until ?? undefined) : undefined;
}
