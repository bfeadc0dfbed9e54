import { logLevels, type LogLine } from '@concierge/contract';
import { background, keptLines, type Log } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { keyOf } from '../keys.ts';

const WRITE_EVERY_MS = 1000;
/** Lines of all processes that are kept, of 4,000 characters each at most; most have some hundred. */
const LINES_MAX = 50_000;
/** What they may take of Redis' memory: above it the older half of them goes. */
const BYTES_MAX = 64 * 1024 * 1024;
/** How often a process looks at what they take, in writes. */
const WEIGHED_EVERY = 30;
const READ_AT_ONCE = 1000;
/** Lines that one question reads: the next page goes on behind them. */
const LOOKED_AT_MAX = 10_000;

/** Writes what this process keeps of its log into Redis, from time to time; what cannot be written is dropped. */
export class LogKeeper {
  readonly #redis: Redis;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #writes = 0;

  constructor(redis: Redis, log: Log) {
    this.#redis = redis;
    this.#log = log;
  }

  start(): void {
    keptLines.open();
    this.#timer = setInterval(() => background(this.#write(), this.#log), WRITE_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#write();
  }

  async #write(): Promise<void> {
    const lines = keptLines.take();
    // A connection that waits for Redis would queue them.
    if (lines.length === 0 || this.#redis.status !== 'ready') return;
    const pipeline = this.#redis.pipeline();
    for (const line of lines) pipeline.xadd(keyOf.keptLog, 'MAXLEN', '~', LINES_MAX, '*', 'line', line);
    // Said in no log: each refusal would be one more line to keep.
    await pipeline.exec().catch(() => undefined);
    if (this.#writes % WEIGHED_EVERY === 0) await this.#trim().catch(() => undefined);
    this.#writes += 1;
  }

  /** Lines differ in length, so their number alone bounds little. */
  async #trim(): Promise<void> {
    const bytes = await this.#redis.memory('USAGE', keyOf.keptLog);
    if (bytes === null || bytes <= BYTES_MAX) return;
    const count = await this.#redis.xlen(keyOf.keptLog);
    await this.#redis.xtrim(keyOf.keptLog, 'MAXLEN', Math.floor(count / 2));
  }
}

export interface LogQuery {
  /** Of a request, a turn or a tenant: any that has it. */
  readonly id?: string | undefined;
  /** This level and those above it. */
  readonly level: LogLine['level'];
  readonly service?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

const levelNumbers = { info: 30, warn: 40, error: 50, fatal: 60 } as const;

const Line = z.object({
  level: z.number(),
  time: z.iso.datetime(),
  service: z.string().default('unknown'),
  msg: z.string().default(''),
  requestId: z.string().optional(),
  turnId: z.string().optional(),
  tenantId: z.string().optional(),
});

/** What services kept of their logs, the newest first. `nextCursor`: where the next page goes on; null at the end. */
export async function readKeptLog(
  redis: Redis,
  { id, level, service, limit, cursor }: LogQuery,
): Promise<{ readonly lines: LogLine[]; readonly nextCursor: string | null }> {
  const lines: LogLine[] = [];
  const asked = (text: string): LogLine | undefined => readMatch(text, { id, level, service });
  let end = cursor === undefined ? '+' : `(${cursor}`;
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += READ_AT_ONCE) {
    const entries = await redis.xrevrange(keyOf.keptLog, end, '-', 'COUNT', READ_AT_ONCE);
    for (const [entryId, [, text = '']] of entries) {
      end = `(${entryId}`;
      const line = asked(text);
      if (line !== undefined) lines.push(line);
      if (lines.length === limit) return { lines, nextCursor: entryId };
    }
    if (entries.length < READ_AT_ONCE) return { lines, nextCursor: null };
  }
  return { lines, nextCursor: end.slice(1) };
}

function readMatch(text: string, { id, level, service }: Pick<LogQuery, 'id' | 'level' | 'service'>): LogLine | undefined {
  const line = id === undefined || text.includes(id) ? toLine(text) : undefined;
  if (line === undefined || levelNumbers[line.level] < levelNumbers[level]) return undefined;
  return service === undefined || line.service === service ? line : undefined;
}

/** A line that was cut off is no JSON any more: what stands at its beginning tells enough. */
function toLine(text: string): LogLine | undefined {
  const whole = text.slice(0, text.lastIndexOf(',"'));
  const read = readJson(text) ?? readJson(`${whole}}`) ?? readJson(`${whole}}}`);
  const parsed = Line.safeParse(read).data;
  if (parsed === undefined) return undefined;
  const { time, service, msg, requestId = null, turnId = null, tenantId = null } = parsed;
  const level = logLevels.findLast((name) => parsed.level >= levelNumbers[name]) ?? 'info';
  return { at: new Date(time).toISOString(), level, service, message: msg, requestId, turnId, tenantId, line: text };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
