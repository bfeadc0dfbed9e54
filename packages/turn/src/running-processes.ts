import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { background, listSlots, readVersion, type Log } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { keyOf } from './keys.ts';

const BEAT_EVERY_MS = 10_000;
/** Two announcements may be late or lost. */
export const PROCESS_SILENCE_MS = 30_000;

/** What a process of the deployment announces of itself. */
const ProcessFacts = z.object({
  service: z.string(),
  version: z.string(),
  build: z.string(),
  host: z.string(),
  pid: z.int(),
  /** Connections to PostgreSQL that it may open; 0 with SQLite. */
  databasePool: z.int(),
  /** Of cron: whether it sends e-mails to owners. */
  sendsEmail: z.boolean().optional(),
  /** How far the clock of its machine is ahead of Redis' own; behind when negative. */
  clockAheadMs: z.number(),
});
export type ProcessFacts = Readonly<z.infer<typeof ProcessFacts>>;

export interface AnnouncedProcess extends Pick<ProcessFacts, 'service' | 'databasePool'> {
  readonly sendsEmail?: boolean | undefined;
  readonly redis: Redis;
  readonly log: Log;
}

/**
 * Redis' clock, and how far this machine's is ahead of it at least: any time between question and answer may be the one
 * that Redis told, and a process that stood still meanwhile has no wrong clock.
 */
export async function readClocks(redis: Redis): Promise<{ readonly nowMs: number; readonly aheadMs: number }> {
  const askedMs = Date.now();
  const [seconds, microseconds] = await redis.time();
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  const aheadMs = Math.max(0, askedMs - nowMs) + Math.min(0, Date.now() - nowMs);
  return { nowMs, aheadMs };
}

/**
 * Announces this process in Redis for as long as it runs, and the number of slots that it has agreed to: for operators,
 * and for processes that start. No turn depends on it.
 */
export class ProcessAnnouncement {
  readonly #id = randomUUID();
  readonly #options: AnnouncedProcess;
  #pulse: NodeJS.Timeout | undefined;

  constructor(options: AnnouncedProcess) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#pulse = setInterval(() => background(this.#beat(), this.#options.log), BEAT_EVERY_MS);
    await this.#beat();
  }

  async stop(): Promise<void> {
    clearInterval(this.#pulse);
    await forget(this.#options.redis, [this.#id]).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    const { redis, service, databasePool, sendsEmail } = this.#options;
    const { nowMs, aheadMs: clockAheadMs } = await readClocks(redis);
    const own = { service, databasePool, ...(sendsEmail !== undefined && { sendsEmail }) };
    const facts: ProcessFacts = { ...own, ...readVersion(), host: hostname(), pid: process.pid, clockAheadMs };
    await redis
      .multi()
      // Where Redis lost everything, it has this process and its number of slots again at once, or none of both.
      .set(keyOf.slots, listSlots(redis).length, 'NX')
      .zadd(keyOf.processes, nowMs, this.#id)
      .hset(keyOf.processFacts, this.#id, JSON.stringify(facts))
      .exec();
    const silent = await redis.zrangebyscore(keyOf.processes, '-inf', nowMs - PROCESS_SILENCE_MS);
    if (silent.length > 0) await forget(redis, silent);
  }
}

async function forget(redis: Redis, ids: readonly string[]): Promise<void> {
  await redis
    .multi()
    .zrem(keyOf.processes, ...ids)
    .hdel(keyOf.processFacts, ...ids)
    .exec();
}

/** The processes that were heard of lately. What another version announces in another way is left out. */
export async function readRunningProcesses(redis: Redis): Promise<ProcessFacts[]> {
  const { nowMs } = await readClocks(redis);
  const ids = await redis.zrangebyscore(keyOf.processes, nowMs - PROCESS_SILENCE_MS, '+inf');
  const announced = ids.length === 0 ? [] : await redis.hmget(keyOf.processFacts, ...ids);
  return announced.flatMap((text) => ProcessFacts.safeParse(JSON.parse(text ?? 'null')).data ?? []);
}

/** Whether owners get e-mails, as crons say; null where none runs that says so. */
export function canSendEmail(processes: readonly ProcessFacts[]): boolean | null {
  const said = processes.flatMap(({ sendsEmail }) => sendsEmail ?? []);
  return said.length === 0 ? null : said.includes(true);
}
