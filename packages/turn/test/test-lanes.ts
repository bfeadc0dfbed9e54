import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import { TestRedis } from '@concierge/testing';
import { z } from 'zod';
import { Lanes, queuePrefix, wakeupQueueName, type Lease, type Wakeup } from '../src/index.ts';
import type { Appended, TurnEnding } from '../src/lanes/lanes.ts';
import { depths } from '../src/lanes/wakeup-queue.ts';
import type { EntryToWrite } from '../src/streams/stream-entry.ts';

/** The fields of a wake-up's job in BullMQ that a script writes. */
const Job = z.object({
  data: z
    .string()
    .transform((text) => z.object({ tenantId: z.string(), sessionId: z.string(), turnId: z.string() }).parse(JSON.parse(text))),
  priority: z.coerce.number(),
  timestamp: z.coerce.number(),
});

let clock = 1_000_000;

/** A turn that was accepted after those made before it. */
export function enqueuedTurn(sessionId: string, facts: Partial<AcceptedTurn> = {}): AcceptedTurn {
  clock += 1;
  return {
    version: 1,
    turnId: `t_${randomBytes(16).toString('hex')}`,
    tenantId: 'acme',
    sessionId,
    acceptedAtMs: clock,
    origin: 'api',
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    sender: null,
    text: 'hello',
    attachments: [],
    requestHash: 'h',
    keyId: null,
    ...facts,
  };
}

/** Lanes over a real Redis, without workers. */
export class TestLanes implements AsyncDisposable {
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly lanes: Lanes;
  #generation = 0;

  private constructor(server: TestRedis) {
    this.server = server;
    this.redis = server.client();
    this.lanes = new Lanes(this.redis);
  }

  static async start(): Promise<TestLanes> {
    return new TestLanes(await TestRedis.start());
  }

  /**
   * Empties Redis and marks it ready. The time is noted: without further notes, no lease ends in a test that is slow.
   */
  async empty(): Promise<void> {
    await this.redis.flushall();
    await this.open();
    await this.lanes.readiness({ notesTime: true });
  }

  /** Marks Redis ready, as a reconciler does after it has scanned all inboxes. */
  async open(): Promise<Wakeup[]> {
    const { runId } = await this.lanes.readiness();
    this.#generation += 1;
    await this.lanes.beginRestore('test');
    return (await this.lanes.open({ runId, restore: 'test', generation: this.#generation })) ?? [];
  }

  async place(given: AcceptedTurn, found: 'accepted' | 'orphan' | 'emptied' = 'accepted'): Promise<Wakeup[]> {
    const placed = await this.lanes.enqueue(given, { busy: 'queue', found });
    if (placed.kind !== 'enqueued') throw new Error(`was ${placed.kind}`);
    return await this.takeWakeups();
  }

  /** What scripts have sent since the last time, in that order. */
  async takeWakeups(): Promise<Wakeup[]> {
    const sent = await Promise.all(depths.map(async (depth) => await this.#takeWakeupsAt(depth)));
    return sent.flat();
  }

  async #takeWakeupsAt(depth: number): Promise<Wakeup[]> {
    const queue = `${queuePrefix}:${wakeupQueueName(depth)}`;
    const ids = await this.redis.zrange(`${queue}:prioritized`, '0', '-1');
    const jobs = await Promise.all(ids.map(async (id) => Job.parse(await this.redis.hgetall(`${queue}:${id}`))));
    if (ids.length > 0) await this.redis.del(`${queue}:prioritized`, ...ids.map((id) => `${queue}:${id}`));
    return jobs.map(({ data, priority, timestamp }) => ({ ...data, backlog: priority, at: timestamp, depth }));
  }

  /** Enqueues a turn that collects. @returns the wake-ups, and when the lane is due */
  async collect(given: AcceptedTurn, debounceMs: number): Promise<{ wakeups: readonly Wakeup[]; dueInMs: number | null }> {
    const placed = await this.lanes.enqueue({ ...given, collects: true }, { busy: 'collect', debounceMs, found: 'accepted' });
    if (placed.kind !== 'enqueued') throw new Error(`was ${placed.kind}`);
    return { wakeups: await this.takeWakeups(), dueInMs: placed.dueInMs };
  }

  async take(sessionId: string, { tenantId = 'acme', depth = 0, worker = 'w' } = {}): Promise<Lease> {
    const answer = await this.lanes.lease({ tenantId, sessionId, depth }, worker, { alone: true });
    if (answer.kind !== 'leased') throw new Error(`was ${answer.kind}`);
    return answer.lease;
  }

  /** Writes what may have been written before. */
  async append(lease: Lease, entries: readonly EntryToWrite[], { progress = false } = {}): Promise<Appended['kind']> {
    return (await this.lanes.append(lease, { entries, before: null }, { payload: '', progress })).kind;
  }

  /** @returns the wake-ups; null when the lease belongs to another */
  async finish(lease: Lease, end: TurnEnding): Promise<readonly Wakeup[] | null> {
    const finished = await this.lanes.finish(lease, { entries: [{ seq: 1000, type: 'done', json: '{}' }], before: null }, end);
    return finished === 'finished' ? await this.takeWakeups() : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.redis.disconnect();
    await this.server[Symbol.asyncDispose]();
  }
}
