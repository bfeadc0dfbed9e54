import { waitReasons, type WaitReason } from '@concierge/contract';
import { askSlots, Figures, readRedisMemory, type connectRedis, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { askInTime, keyOf, LoadSeries, Reconciler, WaitingRoom, type WaitingLook } from '@concierge/turn';
import type { Gauge, Registry } from 'prom-client';

const LOOK_EVERY_MS = 5000;
/** Conversations with staff are on disk; they are handed over by people, not by the second. */
const STAFF_EVERY_MS = 15_000;
/** A little less than a point of the shortest range (`seriesRanges`), so that none is left out. */
const SAMPLE_EVERY_MS = 9000;

export interface SystemFiguresOptions {
  readonly redis: ReturnType<typeof connectRedis>;
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'handoffSessions'>;
  readonly registry: Registry;
  readonly log: Log;
}

/** How many turns wait for a reason, and since when the oldest of them does, as milliseconds since the epoch. */
interface Sum {
  count: number;
  oldestMs: number | undefined;
}

/**
 * Figures of the whole system, which no process counts: what waits and why, the workers, the memory of Redis. They come
 * from a look at Redis every few seconds, whose work is bounded, never from a scrape. Every replica has all of them, so
 * rules take the maximum.
 */
export class SystemFigures extends Reconciler {
  readonly name = 'system figures';
  readonly #options: SystemFiguresOptions;
  readonly #room: WaitingRoom;
  readonly #series: LoadSeries;
  readonly #waiting: Gauge;
  readonly #oldest: Gauge;
  readonly #workers: Gauge;
  readonly #memory: Gauge;
  #staff: Sum = { count: 0, oldestMs: undefined };
  #lookedMs = performance.now();

  constructor(options: SystemFiguresOptions) {
    super({ everyMs: LOOK_EVERY_MS, log: options.log });
    this.#options = options;
    this.#room = new WaitingRoom(options.redis);
    this.#series = new LoadSeries(options.redis);
    const figures = new Figures(options.registry);
    this.#waiting = figures.gauge('concierge_waiting_turns');
    this.#oldest = figures.gauge('concierge_oldest_waiting_turn_age_seconds');
    this.#workers = figures.gauge('concierge_workers');
    this.#memory = figures.gauge('concierge_redis_memory_bytes');
    figures.gauge('concierge_waiting_look_age_seconds', (gauge) => {
      gauge.set((performance.now() - this.#lookedMs) / 1000);
    });
  }

  override async reconcile(): Promise<void> {
    await this.atTimes({ task: 'staff', everyMs: STAFF_EVERY_MS }, async () => this.#countStaff());
    const look = await this.#room.look();
    this.#showWaiting(look);
    await this.share(this.#options.redis, { task: keyOf.seriesLock, everyMs: SAMPLE_EVERY_MS }, async () => this.#series.add(look));
    for (const state of ['running', 'draining', 'stalled'] as const)
      this.#workers.set({ state }, look.workers.filter((worker) => worker.state === state).length);
    await this.#showMemory();
    this.#lookedMs = performance.now();
  }

  /** Of the fullest master, where there are several. */
  async #showMemory(): Promise<void> {
    const masters = await askSlots(this.#options.redis, async (slot) => askInTime(slot, async () => readRedisMemory(slot)));
    const share = ({ usedBytes, maxBytes }: (typeof masters)[number]): number => usedBytes / (maxBytes === 0 ? Infinity : maxBytes);
    const [fullest] = masters.toSorted((left, right) => share(right) - share(left) || right.usedBytes - left.usedBytes);
    if (fullest === undefined) return;
    this.#memory.set({ kind: 'used' }, fullest.usedBytes);
    this.#memory.set({ kind: 'max' }, fullest.maxBytes);
  }

  #showWaiting({ waiting, atMs }: WaitingLook): void {
    const sums = new Map<WaitReason, Sum>(waitReasons.map((reason) => [reason, { count: 0, oldestMs: undefined }]));
    sums.set('staff', this.#staff);
    for (const { reason, count, sinceMs } of waiting) addTo(sums.get(reason), count, sinceMs);
    for (const [reason, { count, oldestMs }] of sums) {
      this.#waiting.set({ reason }, count);
      this.#oldest.set({ reason }, oldestMs === undefined ? 0 : Math.max(0, atMs - oldestMs) / 1000);
    }
  }

  async #countStaff(): Promise<void> {
    const { tenants } = this.#options;
    const sum: Sum = { count: 0, oldestMs: undefined };
    await this.forEachTenant(tenants, async (tenantId) => {
      if ((await tenants.handoffSessions(tenantId)).length === 0) return;
      const { handoffs } = await (await tenants.open(tenantId)).handoffs.paused();
      for (const { since } of handoffs) addTo(sum, 1, Date.parse(since));
    });
    this.#staff = sum;
  }
}

function addTo(sum: Sum | undefined, count: number, sinceMs: number): void {
  if (sum === undefined) return;
  sum.count += count;
  sum.oldestMs = Math.min(sum.oldestMs ?? Infinity, sinceMs);
}
