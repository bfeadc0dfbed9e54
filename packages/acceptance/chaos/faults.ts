import { setTimeout as wait } from 'node:timers/promises';
import { eventually, type ServiceProcess, type TestRedis } from '@concierge/testing';
import { callsInFlight, type Evidence, type LedgerLine } from './audit/evidence.ts';
import type { SeededRandom } from './load/seeded-random.ts';

/** What can be broken: the processes of the system, or of its naive counterpart. */
export interface Fleet {
  readonly gateways: readonly ServiceProcess[];
  readonly workers: readonly ServiceProcess[];
  readonly gatewayUrls: readonly string[];
  readonly redis: TestRedis;
}

export interface FaultPlan {
  /** kill -9 of a worker or a gateway, each started again at once. */
  readonly kills: number;
  /** SIGSTOP of a worker for longer than its lease. */
  readonly stops: number;
  readonly stopMs: number;
  /** kill -9 of Redis, started again over what its append-only file holds. */
  readonly redisKills: number;
  readonly flushes: number;
  readonly overMs: number;
}

type FaultKind = 'kill' | 'stop' | 'redis-kill' | 'flush';

/** Share of the kills that hit a worker. */
const WORKERS_SHARE = 0.5;
/** Model calls in flight at which every worker has some of them. */
const BUSY_CALLS = 8;
/** Another worker has taken over the turns of a frozen one by then, on any machine. */
const TAKEN_TIMEOUT_MS = 60_000;
/** A process that has just been started has no work yet. */
const SETTLED_MS = 3000;

/** Breaks things at seeded random moments and writes down what it broke. */
export class FaultInjector {
  readonly #fleet: Fleet;
  readonly #evidence: Evidence;
  readonly #random: SeededRandom;
  readonly #startedAt = new Map<ServiceProcess, number>();
  readonly #frozen = new Set<ServiceProcess>();
  readonly #thawing: Promise<void>[] = [];

  constructor(fleet: Fleet, evidence: Evidence, random: SeededRandom) {
    this.#fleet = fleet;
    this.#evidence = evidence;
    this.#random = random;
  }

  /** Resolves when everything that was broken runs again. */
  async run(plan: FaultPlan): Promise<void> {
    const began = Date.now();
    for (const { atMs, kind } of this.#schedule(plan)) {
      await wait(Math.max(0, began + atMs - Date.now()));
      await this.#strike(kind, plan);
    }
    await Promise.all(this.#thawing);
  }

  #schedule({ kills, stops, redisKills, flushes, overMs }: FaultPlan): { atMs: number; kind: FaultKind }[] {
    const times = (kind: FaultKind, count: number): FaultKind[] => Array.from({ length: count }, () => kind);
    const all = this.#random.shuffled([
      ...times('kill', kills),
      ...times('stop', stops),
      ...times('redis-kill', redisKills),
      ...times('flush', flushes),
    ]);
    const step = overMs / Math.max(1, all.length);
    return all.map((kind, index) => ({ kind, atMs: Math.round((index + this.#random.next()) * step) }));
  }

  async #strike(kind: FaultKind, { stopMs }: FaultPlan): Promise<void> {
    const { redis } = this.#fleet;
    switch (kind) {
      case 'kill': {
        await this.#kill();
        return;
      }
      case 'stop': {
        await this.#freeze(stopMs);
        return;
      }
      case 'redis-kill': {
        this.#evidence.fault({ atMs: Date.now(), kind, target: 'redis' });
        await redis.kill();
        await redis.start();
        return;
      }
      case 'flush': {
        this.#evidence.fault({ atMs: Date.now(), kind, target: 'redis' });
        await redis.flush();
      }
    }
  }

  async #kill(): Promise<void> {
    const { workers, gateways } = this.#fleet;
    const target = this.#choose(this.#random.chance(WORKERS_SHARE) ? workers : gateways);
    this.#evidence.fault({ atMs: Date.now(), kind: 'kill', target: target.name });
    await target.kill();
    target.start();
    this.#startedAt.set(target, Date.now());
  }

  async #freeze(stopMs: number): Promise<void> {
    // A frozen worker without work would prove nothing.
    await eventually(async () => (await this.#callsInFlight()).length >= BUSY_CALLS, { timeoutMs: 5000, everyMs: 50 }).catch(
      () => undefined,
    );
    const busy = new Set((await this.#callsInFlight()).map(({ caller }) => caller));
    const withTurns = this.#fleet.workers.filter((worker) => busy.has(worker.name) && !this.#frozen.has(worker));
    const target = this.#choose(withTurns.length > 0 ? withTurns : this.#fleet.workers);
    this.#evidence.fault({ atMs: Date.now(), kind: 'stop', target: target.name });
    await target.signal('SIGSTOP');
    this.#frozen.add(target);
    this.#thawing.push(this.#thaw(target, stopMs));
  }

  /** Resumes a worker after another one has taken over its turns: its writes must be refused. */
  async #thaw(target: ServiceProcess, stopMs: number): Promise<void> {
    const held = (await this.#callsInFlight()).filter(({ caller }) => caller === target.name);
    await wait(stopMs);
    const isTaken = async (): Promise<boolean> => {
      const ledger = await this.#evidence.readLedger();
      return held.every(({ marker, number }) => ledger.some((line) => line.marker === marker && line.number > number));
    };
    await eventually(isTaken, { timeoutMs: TAKEN_TIMEOUT_MS, everyMs: 500 }).catch(() => undefined);
    await target.signal('SIGCONT');
    this.#frozen.delete(target);
    this.#evidence.fault({ atMs: Date.now(), kind: 'continue', target: target.name });
  }

  /** Returns the model calls in flight, by the ledger of the model server. */
  async #callsInFlight(): Promise<LedgerLine[]> {
    return callsInFlight(await this.#evidence.readLedger());
  }

  /** Prefers a process that has run for a while; never picks a frozen one, which must come back and be refused. */
  #choose(processes: readonly ServiceProcess[]): ServiceProcess {
    const awake = processes.filter((process) => process.alive && !this.#frozen.has(process));
    const settled = awake.filter((process) => (this.#startedAt.get(process) ?? 0) < Date.now() - SETTLED_MS);
    return this.#random.pick(settled.length > 0 ? settled : awake.length > 0 ? awake : processes);
  }
}
