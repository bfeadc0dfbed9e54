import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { background, RedisScript, type Log } from '@concierge/runtime';
import { takeTask } from '../due/reconciler.ts';
import { keyOf, queuePrefix } from '../keys.ts';

const script = new RedisScript(new URL('./cool.lua', import.meta.url));

const Reply = z.array(z.tuple([z.string(), z.number()]));
const Announced = z.object({ name: z.string(), ms: z.number() });

const defaultTimes = { firstMs: 10_000, maxMs: 5 * 60_000, probeMs: 30_000, memoryMs: 30 * 60_000 } as const;
/** Tenants may name models that no file lists: what fails for them does not fill Redis. */
const NAMES_MAX = 200;

export interface CooldownsOptions {
  readonly redis: Redis;
  /** A separate connection: it only subscribes. */
  readonly subscriber: Redis;
  /** The first time, the longest one, how long one caller may try, and how long failures are counted together. */
  readonly times?: Partial<Record<keyof typeof defaultTimes, number>>;
  readonly log: Log;
}

/**
 * Which models and providers are not to be asked first for now, the same in all workers. Failures alone ask Redis, and
 * pub/sub brings them to every process: while all are well a call costs nothing. After the time one caller of all
 * processes may try; its answer ends the cool-down, its failure begins a longer one.
 */
export class Cooldowns {
  readonly #options: CooldownsOptions;
  readonly #times: Record<keyof typeof defaultTimes, number>;
  /** Until when, by this process' own clock. */
  readonly #untilMs = new Map<string, number>();

  constructor(options: CooldownsOptions) {
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    options.subscriber.on('message', (_channel: string, text: string) => {
      // What another version announces in another way is looked up at the next failure.
      const { data } = Announced.safeParse(JSON.parse(text));
      if (data !== undefined) this.#note(data.name, data.ms);
    });
    // What was announced while the connection was away is looked up.
    options.subscriber.on('ready', () => background(this.#look(), options.log));
  }

  async start(): Promise<void> {
    await this.#options.subscriber.subscribe(keyOf.cooldowns);
    await this.#look();
  }

  get isAllWell(): boolean {
    return this.#untilMs.size === 0;
  }

  /** Whether a model may be asked before others: it is well, or it is this caller that tries. */
  async mayAsk(ref: string): Promise<boolean> {
    for (const name of toNames(ref)) {
      const untilMs = this.#untilMs.get(name);
      if (untilMs === undefined) continue;
      if (untilMs > performance.now()) return false;
      if (!(await takeTask(this.#options.redis, keyOf.cooldownProbe(name), { forMs: this.#times.probeMs }))) return false;
    }
    return true;
  }

  /** It has failed for good in one call. `isProviders`: no model of its provider will answer. */
  failed(
    ref: string,
    { isProviders, retryAfterMs = 0 }: { readonly isProviders: boolean; readonly retryAfterMs?: number | undefined },
  ): void {
    const [model, provider] = toNames(ref);
    const leastMs = Math.min(retryAfterMs, this.#times.maxMs);
    background(this.#look({ name: isProviders ? provider : model, failed: true, leastMs }), this.#options.log);
  }

  /** It has answered to the end. */
  answered(ref: string): void {
    if (this.isAllWell) return;
    for (const name of toNames(ref)) {
      if (!this.#untilMs.delete(name)) continue;
      background(this.#look({ name, failed: false, leastMs: 0 }), this.#options.log);
    }
  }

  async #look(change?: { readonly name: string; readonly failed: boolean; readonly leastMs: number }): Promise<void> {
    const { firstMs, maxMs, memoryMs } = this.#times;
    const given = { ...(change !== undefined && { change }), firstMs, maxMs, memoryMs, namesMax: NAMES_MAX };
    const found = Reply.parse(await script.run(this.#options.redis, [keyOf.coolingDown, queuePrefix], [JSON.stringify(given)]));
    const names = new Set(found.map(([name]) => name));
    for (const name of this.#untilMs.keys()) if (!names.has(name)) this.#untilMs.delete(name);
    for (const [name, ms] of found) this.#untilMs.set(name, performance.now() + ms);
  }

  #note(name: string, ms: number): void {
    if (ms < 0) {
      if (this.#untilMs.delete(name)) this.#options.log.info({ name }, 'a model answers again');
      return;
    }
    this.#untilMs.set(name, performance.now() + ms);
    this.#options.log.warn({ name, ms }, 'a model failed and is not asked first for now');
  }
}

/** A model and its provider. */
function toNames(ref: string): readonly [string, string] {
  return [ref, ref.split('/', 1)[0] ?? ref];
}
