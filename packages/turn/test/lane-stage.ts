import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { AcceptedTurn } from '@concierge/contract';
import { TestRedis } from '@concierge/testing';
import { Lanes, type Lease, type Ring } from '../src/index.ts';
import type { Appended, EntryToWrite, TurnEnding } from '../src/lanes.ts';

let clock = 1_000_000;

/** A turn that was accepted after those made before it. */
export function laidTurn(sessionId: string, facts: Partial<AcceptedTurn> = {}): AcceptedTurn {
  clock += 1;
  return {
    version: 1,
    turnId: `t_${randomBytes(16).toString('hex')}`,
    accountId: 'acme',
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

/** Lanes over a real Redis, without anybody who runs them. */
export class LaneStage implements AsyncDisposable {
  readonly server: TestRedis;
  readonly redis: Redis;
  readonly lanes: Lanes;
  #generation = 0;

  private constructor(server: TestRedis) {
    this.server = server;
    this.redis = server.client();
    this.lanes = new Lanes(this.redis);
  }

  static async start(): Promise<LaneStage> {
    return new LaneStage(await TestRedis.start());
  }

  /** Nothing is in it, and turns run. */
  async empty(): Promise<void> {
    await this.redis.flushall();
    await this.open();
  }

  /** As a sweeper does when it has looked through all inboxes. */
  async open(): Promise<Ring[]> {
    const { runId } = await this.lanes.readiness();
    this.#generation += 1;
    return await this.lanes.open({ runId, generation: this.#generation });
  }

  async place(given: AcceptedTurn, found: 'accepted' | 'orphan' | 'emptied' = 'accepted'): Promise<Ring[]> {
    const placed = await this.lanes.place(given, { busy: 'queue', found });
    if (placed.kind !== 'laid') throw new Error(`was ${placed.kind}`);
    return [...placed.rings];
  }

  /** Lays a turn that collects. @returns what was rung for, and when the lane ripens */
  async collect(given: AcceptedTurn, holdMs: number): Promise<{ rings: readonly Ring[]; ripeInMs: number | null }> {
    const placed = await this.lanes.place({ ...given, collects: true }, { busy: 'collect', holdMs, found: 'accepted' });
    if (placed.kind !== 'laid') throw new Error(`was ${placed.kind}`);
    return { rings: placed.rings, ripeInMs: placed.ripeInMs };
  }

  async take(sessionId: string, { accountId = 'acme', depth = 0, worker = 'w' } = {}): Promise<Lease> {
    const answer = await this.lanes.lease({ accountId, sessionId, depth }, worker, { alone: true });
    if (answer.kind !== 'leased') throw new Error(`was ${answer.kind}`);
    return answer.lease;
  }

  /** Writes what may have been written before. */
  async append(lease: Lease, entries: readonly EntryToWrite[], { progress = false } = {}): Promise<Appended['kind']> {
    return (await this.lanes.append(lease, { entries, before: null }, { payload: '', progress })).kind;
  }

  /** @returns what is rung for; null when the lease belongs to another */
  async finish(lease: Lease, end: TurnEnding): Promise<readonly Ring[] | null> {
    const finished = await this.lanes.finish(lease, { entries: [{ seq: 1000, type: 'done', json: '{}' }], before: null }, end);
    return finished.kind === 'finished' ? finished.rings : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.redis.disconnect();
    await this.server[Symbol.asyncDispose]();
  }
}
