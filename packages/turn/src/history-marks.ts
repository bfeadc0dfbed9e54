import type { Redis } from 'ioredis';
import { keyOf } from './keys.ts';

/** The end of a conversation: its session, and the turn that is the last in it. */
export interface HistoryMark {
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
export class HistoryMarks {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** The newest first. */
  async list(name: string): Promise<HistoryMark[]> {
    const members = await this.#redis.zrevrange(keyOf.historyMarks(name), 0, -1);
    return members.map((member) => {
      const [sessionId = '', turnId = ''] = member.split(' ');
      return { sessionId, turnId };
    });
  }

  async add(name: string, mark: HistoryMark): Promise<void> {
    const key = keyOf.historyMarks(name);
    await this.#redis
      .multi()
      .zadd(key, Date.now(), memberOf(mark))
      .zremrangebyrank(key, 0, -1 - ALIKE_MAX)
      .expire(key, TTL_SECONDS)
      .exec();
  }

  /** @returns false when somebody else has taken it */
  async take(name: string, mark: HistoryMark): Promise<boolean> {
    return (await this.#redis.zrem(keyOf.historyMarks(name), memberOf(mark))) === 1;
  }
}

function memberOf({ sessionId, turnId }: HistoryMark): string {
  return `${sessionId} ${turnId}`;
}
