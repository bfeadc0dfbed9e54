import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';

/** The end of a conversation: its session, and the turn that is the last in it. */
export interface HistoryCursor {
  readonly sessionId: string;
  readonly turnId: string;
}

/** A conversation that rests for longer continues in a new session. */
const TTL_SECONDS = 30 * 24 * 3600;
/** The maximum of conversations with the same history; the oldest beyond it are not found again. */
const ALIKE_MAX = 20;

/**
 * The ends of conversations whose callers send their whole history, by a digest of it. Nothing depends on them: without
 * its cursor a conversation continues in another session, whose model gets the earlier messages.
 */
export class HistoryCursors {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Lists cursors, the newest first. */
  async list(name: string): Promise<HistoryCursor[]> {
    const members = await this.#redis.zrevrange(keyOf.historyCursors(name), 0, -1);
    return members.map((member) => {
      const [sessionId = '', turnId = ''] = member.split(' ');
      return { sessionId, turnId };
    });
  }

  async add(name: string, cursor: HistoryCursor): Promise<void> {
    const key = keyOf.historyCursors(name);
    await this.#redis
      .multi()
      .zadd(key, Date.now(), toMember(cursor))
      .zremrangebyrank(key, 0, -1 - ALIKE_MAX)
      .expire(key, TTL_SECONDS)
      .exec();
  }

  /** @returns false when another caller has taken it */
  async take(name: string, cursor: HistoryCursor): Promise<boolean> {
    return (await this.#redis.zrem(keyOf.historyCursors(name), toMember(cursor))) === 1;
  }
}

function toMember({ sessionId, turnId }: HistoryCursor): string {
  return `${sessionId} ${turnId}`;
}
