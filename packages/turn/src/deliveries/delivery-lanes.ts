import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript } from '@concierge/runtime';
import type { OutboxLane } from '@concierge/tenant';
import { keyOf, queuePrefix } from '../keys.ts';
import { takeTask } from '../take-task.ts';

const scripts = {
  ring: new RedisScript(new URL('../lua/delivery-ring.lua', import.meta.url)),
  lease: new RedisScript(new URL('../lua/delivery-lease.lua', import.meta.url)),
  sweep: new RedisScript(new URL('../lua/delivery-sweep.lua', import.meta.url)),
  backlog: new RedisScript(new URL('../lua/delivery-backlog.lua', import.meta.url)),
  pace: new RedisScript(new URL('../lua/pace.lua', import.meta.url)),
  firstSeen: new RedisScript(new URL('../lua/first-seen.lua', import.meta.url)),
};

/** Whoever has not renewed for this long has lost the conversation. */
const LEASE_MS = 10_000;
/** A bell that is later than this was lost, or its worker is. */
const LATE_MS = 5000;
/** One that was rung again is given so long. */
const AGAIN_MS = 15_000;
/** What waits for its pace, or is being sent, is of a tenant's backlog as well. */
const BACKLOG_MS = 10_000;
/** Longer than a message waits. */
const SEEN_KEPT_MS = 7 * 24 * 3_600_000;
/** What a person may have mended at the provider is not reported to us: one message of all that wait is tried so often. */
const BINDING_TRY_EVERY_MS = 15 * 60_000;

/** The right to send in one conversation; speed depends on it, and order, but never whether a part is sent twice. */
export interface DeliveryLease extends OutboxLane {
  readonly token: string;
}

export interface PaceRules {
  readonly conversationIntervalMs: number;
  readonly conversationBurst: number;
  readonly bindingPerSecond: number;
}

/** The binding that a conversation is on. */
export interface PacedBinding {
  readonly accountId: string;
  readonly channel: string;
}

/** Which outboxes have something to be sent, who is sending, and how fast. All of it can be emptied: the files say what is to be sent. */
export class DeliveryLanes {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Conversations of the tenant in which something is to be sent by then, this one included; 0 when a bell rings before that anyway. */
  async expectBell(lane: OutboxLane, delayMs: number): Promise<number> {
    const keys = [keyOf.deliveriesDue, keyOf.deliveriesOf(lane.accountId), queuePrefix];
    return z.number().parse(await scripts.ring.run(this.#redis, keys, [memberOf(lane), Math.ceil(delayMs), BACKLOG_MS]));
  }

  /** Conversations of the tenant in which something is to be sent now. */
  async backlogOf(accountId: string): Promise<number> {
    return z.number().parse(await scripts.backlog.run(this.#redis, [keyOf.deliveriesOf(accountId), queuePrefix], [BACKLOG_MS]));
  }

  /** undefined while another has it. */
  async take(lane: OutboxLane): Promise<DeliveryLease | undefined> {
    const lease = { ...lane, token: randomUUID() };
    return (await this.#lease('take', lease)) ? lease : undefined;
  }

  /** False when it has passed to another. */
  async keep(lease: DeliveryLease): Promise<boolean> {
    return this.#lease('keep', lease);
  }

  async release(lease: DeliveryLease, { isEmpty }: { readonly isEmpty: boolean }): Promise<void> {
    await this.#lease(isEmpty ? 'empty' : 'release', lease);
  }

  /** Conversations whose bell was lost, or whose holder is gone. */
  async late(atMost: number): Promise<OutboxLane[]> {
    const members = z
      .array(z.string())
      .parse(await scripts.sweep.run(this.#redis, [keyOf.deliveriesDue, queuePrefix], [atMost, LATE_MS, AGAIN_MS]));
    return members.map((member) => laneOfMember(member));
  }

  /** Those of which Redis knows nothing. */
  async unknown(lanes: readonly OutboxLane[]): Promise<OutboxLane[]> {
    if (lanes.length === 0) return [];
    const scores = await this.#redis.zmscore(keyOf.deliveriesDue, ...lanes.map((lane) => memberOf(lane)));
    return lanes.filter((_, index) => scores[index] == null);
  }

  /** How long a message has to wait so that the app does not refuse it; 0 when it may go, and is counted then. */
  async pace(lane: OutboxLane, channel: string, rules: PaceRules): Promise<number> {
    const { accountId } = lane;
    const binding = `${accountId}/${channel}`;
    const { conversationIntervalMs, conversationBurst, bindingPerSecond } = rules;
    return z
      .number()
      .parse(
        await scripts.pace.run(
          this.#redis,
          [keyOf.pace(memberOf(lane)), keyOf.pace(binding), keyOf.paceHold(binding), queuePrefix],
          [conversationIntervalMs, conversationBurst, 1000 / bindingPerSecond, bindingPerSecond],
        ),
      );
  }

  /** Nothing is sent through this binding for so long. */
  async hold({ accountId, channel }: PacedBinding, ms: number): Promise<void> {
    await takeTask(this.#redis, keyOf.paceHold(`${accountId}/${channel}`), { forMs: Math.max(1, ms), keeps: true });
  }

  /**
   * For how long the names have been known in the conversation, by service time: 0 for those that no worker has asked about before, or that Redis has lost.
   * Names that are not given are forgotten.
   */
  async ages(lane: OutboxLane, names: readonly string[]): Promise<readonly number[]> {
    const keys = [keyOf.deliveriesSeen(memberOf(lane)), queuePrefix];
    const reply = await scripts.firstSeen.run(this.#redis, keys, [JSON.stringify({ names, keepMs: SEEN_KEPT_MS })]);
    return z.array(z.number()).parse(reply);
  }

  /** Whether to try a binding that the provider refuses: true for one caller each time. */
  async mayTryBinding({ accountId, channel }: PacedBinding): Promise<boolean> {
    return takeTask(this.#redis, keyOf.bindingTried(`${accountId}/${channel}`), { forMs: BINDING_TRY_EVERY_MS });
  }

  /** The provider has just refused it. */
  async noteBindingRefused({ accountId, channel }: PacedBinding): Promise<void> {
    await takeTask(this.#redis, keyOf.bindingTried(`${accountId}/${channel}`), { forMs: BINDING_TRY_EVERY_MS, keeps: true });
  }

  async #lease(verb: 'take' | 'keep' | 'release' | 'empty', lease: DeliveryLease): Promise<boolean> {
    const member = memberOf(lease);
    const keys = [keyOf.deliveryLease(member), keyOf.deliveriesDue, keyOf.deliveriesOf(lease.accountId), queuePrefix];
    return (await scripts.lease.run(this.#redis, keys, [verb, lease.token, member, LEASE_MS])) === 1;
  }
}

function memberOf({ accountId, lane }: OutboxLane): string {
  return `${accountId}/${lane}`;
}

function laneOfMember(member: string): OutboxLane {
  const [accountId = '', lane = ''] = member.split('/');
  return { accountId, lane };
}
