import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript } from '@concierge/runtime';
import { keyOf, queuePrefix } from './keys.ts';

const scripts = {
  claim: new RedisScript(new URL('lua/claim-schedules.lua', import.meta.url)),
  plan: new RedisScript(new URL('lua/plan-schedule.lua', import.meta.url)),
};

/** Whoever claims a schedule and dies leaves it to the others after this long. */
const CLAIM_MS = 5000;

/** Before every clock. */
const AT_ONCE = 0;

/** One schedule of one tenant. */
export interface ScheduleKey {
  readonly accountId: string;
  readonly scheduleId: string;
}

export interface ClaimedSchedule extends ScheduleKey {
  /** Until when it is this claim's: tells it from a later one, and from a change in between. */
  readonly untilMs: number;
}

const Members = z.array(z.string());

/** When each schedule is to be looked at: a sorted set that can be thrown away at any moment. What is true stands in the files. */
export class DueSchedules {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Those that are due, for this caller alone for a while. */
  async claim(nowMs: number, limit: number): Promise<ClaimedSchedule[]> {
    const untilMs = nowMs + CLAIM_MS;
    const keys = [keyOf.schedules, keyOf.schedulesClaimed, queuePrefix];
    const members = Members.parse(await scripts.claim.run(this.#redis, keys, [nowMs, limit, untilMs, CLAIM_MS]));
    return members.map((member) => ({ ...keyOfMember(member), untilMs }));
  }

  /** When to look again; null for never. Does nothing when the schedule was called for, or claimed by another, in between. */
  async plan({ untilMs, ...key }: ClaimedSchedule, atMs: number | null): Promise<void> {
    await scripts.plan.run(this.#redis, [keyOf.schedules, keyOf.schedulesClaimed], [memberOf(key), untilMs, atMs ?? '']);
  }

  /** To be looked at by the next replica that asks, whatever its clock says. */
  async callFor(keys: readonly ScheduleKey[]): Promise<void> {
    if (keys.length > 0) await this.#redis.zadd(keyOf.schedules, ...scored(keys, AT_ONCE));
  }

  async isLaid(): Promise<boolean> {
    return (await this.#redis.exists(keyOf.schedulesLaid)) === 1;
  }

  /** All there are, in one step: a Redis that is emptied meanwhile has all of them or is known to have none. */
  async layAll(keys: readonly ScheduleKey[]): Promise<void> {
    const transaction = this.#redis.multi();
    if (keys.length > 0) transaction.zadd(keyOf.schedules, ...scored(keys, AT_ONCE));
    await transaction.set(keyOf.schedulesLaid, '1').exec();
  }
}

function scored(keys: readonly ScheduleKey[], atMs: number): (string | number)[] {
  return keys.flatMap((key) => [atMs, memberOf(key)]);
}

function memberOf({ accountId, scheduleId }: ScheduleKey): string {
  return `${accountId}/${scheduleId}`;
}

function keyOfMember(member: string): ScheduleKey {
  const [accountId = '', scheduleId = ''] = member.split('/');
  return { accountId, scheduleId };
}
