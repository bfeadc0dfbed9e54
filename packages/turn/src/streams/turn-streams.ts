import type { Redis } from 'ioredis';
import type { Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { replayTurn } from './replay-turn.ts';
import { TurnFold, type FoldedTurn } from './fold-stream.ts';
import { keyOf, queuePrefix } from '../keys.ts';
import { TurnFollower, type FollowSink } from './turn-follower.ts';
import { compareIds, isTerminal, newestEntry, readEntries, toEvent } from './stream-entry.ts';

const LIVE_PREFIX = `${queuePrefix}:live:`;
/** A subscriber connection that does not answer within this is replaced. */
const PING_EVERY_MS = 5000;
/** Many turns end at once: one command unsubscribes from all that ended within this time. */
const LEAVE_TOGETHER_MS = 50;

export interface TurnStreamsOptions {
  /** The connection that reads streams. */
  readonly redis: Redis;
  /** A separate connection: it only subscribes. */
  readonly subscriber: Redis;
  readonly log: Log;
}

/**
 * Readers of turns: any number on one subscriber connection. The stream is the log, pub/sub carries the same entries
 * live; a reader that sees a gap, reconnects or joins late fills from the stream.
 */
export class TurnStreams {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #log: Log;
  readonly #followers = new Map<string, Set<TurnFollower>>();
  readonly #ping: NodeJS.Timeout;
  /** Turns that are no longer followed and still subscribed to. */
  readonly #left = new Set<string>();
  #leaving: NodeJS.Timeout | undefined;

  constructor({ redis, subscriber, log }: TurnStreamsOptions) {
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#log = log;
    subscriber.on('message', (channel: string, payload: string) => {
      this.#deliver(channel, payload);
    });
    subscriber.on('ready', () => {
      this.#refill();
    });
    this.#ping = setInterval(() => {
      void this.#checkSubscriber();
      for (const followers of this.#followers.values()) for (const follower of followers) follower.checkSilence();
    }, PING_EVERY_MS);
    this.#ping.unref();
  }

  get openStreams(): number {
    let open = 0;
    for (const followers of this.#followers.values()) open += followers.size;
    return open;
  }

  /**
   * Follows a turn from `after` (exclusive; null: from the start) to its end. Misses nothing and repeats nothing.
   * @returns a function that stops following
   */
  follow(scope: TenantScope, turnId: string, sink: FollowSink): () => void {
    const follower = new TurnFollower({
      redis: this.#redis,
      turnId,
      sink,
      log: this.#log,
      replay: async (after) => await this.#replay(scope, turnId, after),
    });
    const leave = (): void => {
      follower.close();
      this.#leave(turnId, follower);
    };
    follower.onEnd = leave;
    void this.#join(turnId, follower);
    return leave;
  }

  /**
   * Whether the turn has ended and a reader that holds the event `after` has seen its end; false while that cannot be
   * determined.
   */
  async isReadToEnd(scope: TenantScope, turnId: string, after: string): Promise<boolean> {
    try {
      const newest = await newestEntry(this.#redis, turnId);
      if (newest !== null) return isTerminal(newest) && compareIds(after, newest.id) >= 0;
      return (await this.#replay(scope, turnId, after))?.length === 0;
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
    let entries = await readEntries(this.#redis, turnId, null);
    if (!entries.some((entry) => entry.type === 'done' || entry.type === 'error')) entries = (await replayTurn(scope, turnId, null)) ?? [];
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
    clearTimeout(this.#leaving);
    for (const followers of this.#followers.values()) for (const follower of followers) follower.close();
    this.#followers.clear();
    await this.#subscriber.quit().catch(() => undefined);
  }

  async #join(turnId: string, follower: TurnFollower): Promise<void> {
    const known = this.#followers.get(turnId);
    if (known === undefined) this.#followers.set(turnId, new Set([follower]));
    else known.add(follower);
    // Subscribe, wait for the acknowledgement, then read the stream, then go live: in that order nothing is missed.
    await this.#subscriber.subscribe(keyOf.live(turnId)).catch((error: unknown) => {
      this.#log.warn({ err: error, turnId }, 'cannot subscribe yet');
    });
    await follower.fill({ asksDisk: true });
  }

  #leave(turnId: string, follower: TurnFollower): void {
    const followers = this.#followers.get(turnId);
    if (followers === undefined || !followers.delete(follower) || followers.size > 0) return;
    this.#followers.delete(turnId);
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
    if (gone.length > 0) this.#subscriber.unsubscribe(...gone.map(keyOf.live)).catch(() => undefined);
  }

  #deliver(channel: string, payload: string): void {
    const followers = this.#followers.get(channel.slice(LIVE_PREFIX.length));
    if (followers === undefined) return;
    for (const follower of followers) follower.receive(payload);
  }

  #refill(): void {
    for (const followers of this.#followers.values()) for (const follower of followers) void follower.fill({ asksDisk: true });
  }

  /** Replays a turn that has no inbox file and is in a session: it has ended, whatever state Redis has. */
  async #replay(scope: TenantScope, turnId: string, after: string | null): ReturnType<typeof replayTurn> {
    if (await scope.inbox.hasFile(turnId)) return null;
    return await replayTurn(scope, turnId, after);
  }

  async #checkSubscriber(): Promise<void> {
    if (this.#followers.size === 0 || this.#subscriber.status !== 'ready') return;
    const late = setTimeout(() => {
      this.#subscriber.disconnect(true);
    }, PING_EVERY_MS - 500);
    await this.#subscriber.ping().catch(() => undefined);
    clearTimeout(late);
  }
}
