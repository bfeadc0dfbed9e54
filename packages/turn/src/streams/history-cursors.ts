import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';

/** The end of a conversation: its session, and the turn that is the last in it. */
export interface HistoryCursor {
  readonly sessionId: string;
  readonly turnId: string;
}

/** A conversation that rests for longer goes on in a session of its own. */
const TTL_SECONDS = 30 * 24 * 3600;
/** Conversations that begin alike and rest at the same place; the oldest ones of more are not found again. */
const ALIKE_MAX = 20;

/**
 * Where conversations ended whose callers tell their whole history, by a digest of it. Nothing depends on them: without its mark a conversation goes on in
 * another session, and its model is told what was said before.
 */
export class HistoryCursors {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** The newest first. */
  async list(name: string): Promise<HistoryCursor[]> {
    const members = await this.#redis.zrevrange(keyOf.historyCursors(name), 0, -1);
    return members.map((member) => {
      const [sessionId = '', turnId = ''] = member.split(' ');
      return { sessionId, turnId };
    });
  }

  async add(name: string, mark: HistoryCursor): Promise<void> {
    const key = keyOf.historyCursors(name);
    await this.#redis
      .multi()
      .zadd(key, Date.now(), memberOf(mark))
      .zremrangebyrank(key, 0, -1 - ALIKE_MAX)
      .expire(key, TTL_SECONDS)
      .exec();
  }

  /** @returns false when somebody else has taken it */
  async take(name: string, mark: HistoryCursor): Promise<boolean> {
    return (await this.#redis.zrem(keyOf.historyCursors(name), memberOf(mark))) === 1;
  }
}

function memberOf({ sessionId, turnId }: HistoryCursor): string {
  return `${sessionId} ${turnId}`;
}
