import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript } from '@concierge/runtime';
import type { OutboxLane } from '@concierge/tenant';
import { keyOf, queuePrefix } from '../keys.ts';
import { takeTask } from '../due/reconciler.ts';

const scripts = {
  pace: new RedisScript(new URL('./pace.lua', import.meta.url)),
  firstSeen: new RedisScript(new URL('./first-seen.lua', import.meta.url)),
};

/** Longer than a message waits. */
const SEEN_KEPT_MS = 7 * 24 * 3_600_000;
/**
 * The provider does not report that an operator has repaired the binding: one of the waiting messages is tried at this
 * interval.
 */
const BINDING_TRY_EVERY_MS = 15 * 60_000;

export interface PaceRules {
  readonly conversationIntervalMs: number;
  readonly conversationBurst: number;
  readonly bindingPerSecond: number;
}

/** The channel binding of the conversation. */
export interface PacedBinding {
  readonly tenantId: string;
  readonly channel: string;
}

/**
 * The pace of sending, and when each waiting message was first seen. All of it can be lost: a pace then starts afresh,
 * and waiting messages count as just seen.
 */
export class DeliveryPace {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** How long a message has to wait so that the provider does not refuse it; 0 when it may go, and is then counted. */
  async pace(lane: OutboxLane, channel: string, rules: PaceRules): Promise<number> {
    const { tenantId } = lane;
    const binding = `${tenantId}/${channel}`;
    const keys = [keyOf.pace(toMember(lane)), keyOf.pace(binding), keyOf.throttledUntil(binding), queuePrefix];
    const { conversationIntervalMs, conversationBurst, bindingPerSecond } = rules;
    const ofConversation = { intervalMs: conversationIntervalMs, burst: conversationBurst };
    const ofBinding = { intervalMs: 1000 / bindingPerSecond, burst: bindingPerSecond };
    return z.number().parse(await scripts.pace.run(this.#redis, keys, [JSON.stringify([ofConversation, ofBinding])]));
  }

  /** Pauses all sending through this binding for this long. */
  async hold({ tenantId, channel }: PacedBinding, ms: number): Promise<void> {
    await takeTask(this.#redis, keyOf.throttledUntil(`${tenantId}/${channel}`), { forMs: Math.max(1, ms), keeps: true });
  }

  /**
   * How long each name has been known in the conversation, by service time: 0 for names that no worker has asked about
   * before or that Redis has lost. Names that are not given are forgotten.
   */
  async ages(lane: OutboxLane, names: readonly string[]): Promise<readonly number[]> {
    const keys = [keyOf.deliveriesSeen(toMember(lane)), queuePrefix];
    const reply = await scripts.firstSeen.run(this.#redis, keys, [JSON.stringify({ names, keepMs: SEEN_KEPT_MS })]);
    return z.array(z.number()).parse(reply);
  }

  /** Whether to try a binding that the provider refuses: true for one caller each time. */
  async mayTryBinding({ tenantId, channel }: PacedBinding): Promise<boolean> {
    return takeTask(this.#redis, keyOf.bindingTried(`${tenantId}/${channel}`), { forMs: BINDING_TRY_EVERY_MS });
  }

  /** The provider has just refused it. */
  async noteBindingRefused({ tenantId, channel }: PacedBinding): Promise<void> {
    await takeTask(this.#redis, keyOf.bindingTried(`${tenantId}/${channel}`), { forMs: BINDING_TRY_EVERY_MS, keeps: true });
  }
}

function toMember({ tenantId, lane }: OutboxLane): string {
  return `${tenantId}/${lane}`;
}
