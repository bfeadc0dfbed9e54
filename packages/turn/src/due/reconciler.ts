import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { HOUR_MS, MINUTE_MS } from '@concierge/contract';
import { background, type Log, RedisScript } from '@concierge/runtime';
import type { RepairKind } from '@concierge/runtime/figures';
import type { Tenants } from '@concierge/tenant';
import { queuePrefix } from '../keys.ts';

/**
 * A scan of all tenants takes half a hundredth of one process's time: what is looked for is left by crashes. Where that
 * would make the scans rarer than this, it takes more, up to a twentieth.
 */
const LOAD = { usual: 200, most: 20 } as const;
const UNHURRIED_MS = 15_000;
/** Looks at files are made in place, without a pause: so many of them take less than a millisecond. */
const TENANTS_AT_ONCE = 50;

export interface ReconcilerOptions {
  readonly everyMs: number;
  readonly log: Log;
}

/** Called for what a reconciler has put right; `count` may be 0. */
export type OnRepaired = (kind: RepairKind, count: number) => void;

/**
 * Compares files with Redis and repairs, again and again, one round at a time. Speed never depends on it, truth always
 * does.
 */
export abstract class Reconciler {
  abstract readonly name: string;
  readonly #everyMs: number;
  readonly #log: Log;
  /** Of the last two times of each task. */
  readonly #tookMs = new Map<string, readonly [number, number]>();
  readonly #nextMs = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #isStopped = false;

  constructor({ everyMs, log }: ReconcilerOptions) {
    this.#everyMs = everyMs;
    this.#log = log;
  }

  start(): void {
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), this.#everyMs);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#round?.catch(() => undefined);
  }

  /** Runs one round. */
  abstract reconcile(): Promise<void>;

  /** Runs a task in one of all processes, at most this often, and less often the longer it takes. */
  protected async share(
    redis: Redis,
    { task, everyMs }: { readonly task: string; readonly everyMs: number },
    step: () => Promise<void>,
  ): Promise<void> {
    if (performance.now() < (this.#nextMs.get(task) ?? 0)) return;
    const forMs = this.#periodMs(task, everyMs);
    // What is rare is asked for once a minute where another process has it.
    if (await takeTask(redis, task, { forMs })) await this.#measure(task, step);
    else if (everyMs >= HOUR_MS) this.#nextMs.set(task, performance.now() + MINUTE_MS);
  }

  /** The same for a task that each process runs. */
  protected async atTimes(
    { task, everyMs }: { readonly task: string; readonly everyMs: number },
    step: () => Promise<void>,
  ): Promise<void> {
    if (performance.now() < (this.#nextMs.get(task) ?? 0)) return;
    const beganMs = performance.now();
    await this.#measure(task, step);
    this.#nextMs.set(task, beganMs + this.#periodMs(task, everyMs));
  }

  /** One look through all tenants; one that fails keeps no other from it. */
  protected async forEachTenant(tenants: Pick<Tenants, 'list'>, look: (tenantId: string) => Promise<void>): Promise<void> {
    for await (const tenantId of unhurried(await tenants.list())) {
      if (this.#isStopped) return;
      await look(tenantId).catch((error: unknown) => {
        this.#log.error({ err: error, tenantId, reconciler: this.name }, 'cannot look through a tenant');
      });
    }
  }

  #periodMs(task: string, everyMs: number): number {
    // The shorter one: a process that stood still once, or its Redis, has not worked all that time.
    const tookMs = Math.min(...(this.#tookMs.get(task) ?? [0]));
    return Math.max(everyMs, tookMs * LOAD.most, Math.min(tookMs * LOAD.usual, UNHURRIED_MS));
  }

  async #measure(task: string, step: () => Promise<void>): Promise<void> {
    const beganMs = performance.now();
    await step();
    const [, before] = this.#tookMs.get(task) ?? [0, 0];
    this.#tookMs.set(task, [before, performance.now() - beganMs]);
  }

  #tick(): void {
    if (this.#round !== undefined) return;
    this.#round = this.reconcile().finally(() => {
      this.#round = undefined;
    });
    background(this.#round, this.#log);
  }
}

/** The same items, with a turn of the event loop now and then: other work does not wait for all of them. */
export async function* unhurried<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  for (const [index, item] of items.entries()) {
    if (index % TENANTS_AT_ONCE === TENANTS_AT_ONCE - 1) await nextTurn();
    yield item;
  }
}

const script = new RedisScript(new URL('../lua/take.lua', import.meta.url));

interface TaskClaim {
  /** 0 gives it back. */
  readonly forMs: number;
  /** The caller has it and prolongs the claim, whatever another did meanwhile. */
  readonly keeps?: boolean;
  /** What `claimTask` answered the caller before: it prolongs the claim unless another has taken it since. */
  readonly holds?: number;
  /** Service time goes on by this, too: where no process runs that notes it, the claim of one that died has no end. */
  readonly notesTime?: boolean;
}

/** Claims a task for a time, so that one of many processes does it; false when another has it. */
export async function takeTask(redis: Redis, task: string, claim: Omit<TaskClaim, 'holds'>): Promise<boolean> {
  return (await claimTask(redis, task, claim)) !== 0;
}

/** As `takeTask`, for what two must not do at once. @returns what its holder is known by; 0 when another has it */
export async function claimTask(redis: Redis, task: string, { keeps = false, ...claim }: TaskClaim): Promise<number> {
  return Number(await script.run(redis, [queuePrefix, task], [JSON.stringify({ keeps, ...claim })]));
}
