import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Ioredis from 'ioredis';
import type { Redis, RedisOptions } from 'ioredis';
import { backoffMs } from '@concierge/contract/backoff';
import { ConfigError } from './environment.ts';
import type { Log } from './log.ts';
import { giveUpAfter } from './concurrency/tasks.ts';
import { processCounts } from './metrics/process-counts.ts';
import { toClusterConnector } from './cluster/cluster-connector.ts';
import { chooseTags, findHashSlot, joinSlots, redisPrefix, renameFor, listSlots } from './cluster/redis-slots.ts';
import { parseRedisAddress, readSlots } from './redis-address.ts';

const require = createRequire(import.meta.url);

/**
 * `producer`: fails fast, for services whose clients wait. `worker`: waits as long as it takes, for blocking reads.
 * `subscriber`: waits, and resubscribes by itself.
 */
export type RedisRole = 'producer' | 'worker' | 'subscriber';

export interface RedisConnectOptions {
  /** As `parseRedisAddress` reads it. */
  readonly url: string;
  readonly role: RedisRole;
  readonly log: Log;
}

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

const COMMAND_TIMEOUT_MS = 1500;
const START_TIMEOUT_MS = 30_000;

export function reconnectDelayMs(attempt: number): number {
  return Math.round(backoffMs(attempt, { firstMs: 200, maxMs: 2000, jitter: 0.1 }));
}

function chooseOptions(role: RedisRole): ClientOptions {
  const common: ClientOptions = {
    retryStrategy: reconnectDelayMs,
    enableReadyCheck: true,
    keepAlive: 10_000,
    connectTimeout: 5000,
    // A client that was never connected holds its process for this long after disconnect().
    disconnectTimeout: 200,
    lazyConnect: false,
    // The server became a replica: the connection is for the master, wherever it is now.
    reconnectOnError: (error) => /^(?:READONLY|MOVED)\b/u.test(error.message),
    // A master that froze closes no connection: the sentinels tell that another one took its place.
    failoverDetector: true,
    sentinelRetryStrategy: reconnectDelayMs,
    sentinelReconnectStrategy: reconnectDelayMs,
  };
  switch (role) {
    case 'producer': {
      return { ...common, enableOfflineQueue: false, maxRetriesPerRequest: 1 };
    }
    case 'worker': {
      return { ...common, maxRetriesPerRequest: null };
    }
    case 'subscriber': {
      return { ...common, maxRetriesPerRequest: null, autoResubscribe: true };
    }
  }
}

/**
 * Connects with the settings that each role needs. The first failure and each change are logged once; an `error` never
 * ends the process. Where there are several slots, the connection leads to the first, and has one to each other beside
 * it (`listSlots`).
 */
export function connectRedis(options: RedisConnectOptions): Redis {
  const [first = '', ...others] = chooseTags(readSlots(options.url));
  const redis = connectTo(first, options);
  if (others.length > 0) joinSlots([redis, ...others.map((tag) => connectTo(tag, options))]);
  return redis;
}

function connectTo(tag: string, { url, role, log }: RedisConnectOptions): Redis {
  const { cluster: nodes, ...address } = parseRedisAddress(url);
  // On demand: most commands need no Redis.
  const ioredis: typeof Ioredis = require('ioredis');
  const slot = { url, nodes: nodes ?? [], hashSlot: findHashSlot(tag), options: address, retryAfterMs: reconnectDelayMs };
  const Connector = nodes === undefined ? undefined : toClusterConnector(ioredis, slot);
  const redis = new ioredis.Redis({ ...chooseOptions(role), ...address, ...(Connector !== undefined && { Connector }) });
  if (!redisPrefix.endsWith(`{${tag}}`)) renameFor(redis, tag);
  interceptCommands(redis, role);
  let down = false;
  redis.on('error', (error: unknown) => {
    processCounts.redisConnection += 1;
    // Without its stack, which shows only the client: this line comes once for each connection.
    if (!down) log.warn({ role, redis: hideCredentials(url), reason: describeReason(error) }, 'redis is not reachable');
    down = true;
  });
  redis.on('ready', () => {
    if (down) log.info({ role }, 'redis is back');
    down = false;
  });
  return redis;
}

/** An address as it may be shown. */
export function hideCredentials(url: string): string {
  return url.replace(/^(?<scheme>[a-z+]+:\/\/)[^@/]*@/u, '$<scheme>').replace(/(?<=[?&]sentinelPassword=)[^&]*/u, '…');
}

/** Of several addresses that a name has, Node reports all failures as one without a message. */
function describeReason(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describeReason).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/** Answers that stay the same until an operator changes a setting. */
const refusal = /^(?:WRONGPASS|NOAUTH|NOPERM|DENIED|ERR invalid password|ERR AUTH|ERR This instance has cluster support disabled)\b/u;

/** The first words of Redis' error answers for temporary failures. */
const passingReplies = new Set('OOM LOADING READONLY MASTERDOWN MISCONF NOREPLICAS BUSY CLUSTERDOWN TRYAGAIN MOVED ASK'.split(' '));

const unavailable = new WeakSet<Error>();

/**
 * Sends the commands of one round of the event loop in one system call, in their order: under load that is most of what
 * a write costs; idle, a command leaves some microseconds later. And records where a command is rejected for a
 * connection that is gone, cut or too slow: ioredis rejects with plain errors. Commands of a producer have a time.
 */
function interceptCommands(redis: Redis, role: RedisRole): void {
  const send = redis.sendCommand.bind(redis);
  let corked: Redis['stream'] | undefined;
  const release = (): void => {
    corked?.uncork();
    corked = undefined;
  };
  redis.sendCommand = (command, stream) => {
    const { reject } = command;
    command.reject = (error) => {
      if (error.name !== 'ReplyError' || passingReplies.has(error.message.split(' ', 1)[0] ?? '')) {
        unavailable.add(error);
        processCounts.redisCommand += 1;
      }
      reject(error);
    };
    if (role === 'producer') limitTime(command);
    // While it connects there is no stream yet, or still the old one.
    if (corked === undefined && redis.status === 'ready') {
      corked = redis.stream;
      corked.cork();
      setImmediate(release);
    }
    return send(command, stream);
  };
}

/** Gives a command up in time; ioredis would also give up what Redis has answered while this process stood still. */
function limitTime(command: Parameters<Redis['sendCommand']>[0]): void {
  const { resolve, reject } = command;
  const endWait = giveUpAfter(COMMAND_TIMEOUT_MS, () => command.reject(new Error('Command timed out')));
  command.resolve = (answer: unknown) => {
    endWait();
    resolve(answer);
  };
  command.reject = (error) => {
    endWait();
    reject(error);
  };
}

/** Whether a command failed for the state of Redis or of the connection, so that the same one may succeed later. */
export function isRedisUnavailable(error: Error): boolean {
  return unavailable.has(error);
}

/** Waits for the answers to commands that were sent; a broken connection is closed at once. */
async function closeRedis(redis: Redis): Promise<void> {
  await Promise.all(
    listSlots(redis).map(async (slot) => {
      if (slot.status === 'ready') await slot.quit().catch(() => undefined);
      slot.disconnect();
    }),
  );
}

/** Like `connectRedis`; the stack closes it. */
export function openConnection(options: RedisConnectOptions, stack: AsyncDisposableStack): Redis {
  return stack.adopt(connectRedis(options), closeRedis);
}

/**
 * Like `openConnection`, and waits until it can be used, `timeoutMs` at most.
 * @throws ConfigError when it cannot be reached in this time, or refuses the password
 */
export async function openRedis(
  { timeoutMs = START_TIMEOUT_MS, ...options }: RedisConnectOptions & { readonly timeoutMs?: number },
  stack: AsyncDisposableStack,
): Promise<Redis> {
  const redis = openConnection(options, stack);
  const refuse = (reason: string): ConfigError =>
    new ConfigError([`REDIS_URL: must lead to a Redis that can be used (${hideCredentials(options.url)}: ${reason})`]);
  await redisReady(redis, timeoutMs).catch((error: unknown) => {
    throw refuse(describeReason(error));
  });
  const unfit = await findUnfit(redis, options.url).catch(() => undefined);
  if (unfit !== undefined) throw refuse(unfit);
  // A slot that is away keeps no tenant of another from work.
  for (const slot of listSlots(redis).slice(1)) {
    await redisReady(slot, timeoutMs).catch((error: unknown) => {
      options.log.warn({ redis: hideCredentials(options.url), reason: describeReason(error) }, 'a slot of Redis is away');
    });
  }
  return redis;
}

/** What stands in the place of a server that takes writes. */
async function findUnfit(redis: Redis, url: string): Promise<string | undefined> {
  const [server, replication] = [await redis.info('server'), await redis.info('replication')];
  const mode = /redis_mode:(\w+)/u.exec(server)?.[1];
  if (mode === 'sentinel') return 'it is a sentinel: its address begins with redis+sentinel://, and ends with the name of the master';
  if (mode === 'cluster' && !/^rediss?\+cluster:/u.test(url)) return 'it is a node of a cluster: its address begins with redis+cluster://';
  return /role:slave/u.test(replication) ? 'it is a replica' : undefined;
}

/**
 * Whether Redis refused a write for lack of memory: nothing was written, and a later try may succeed. Redis reports
 * this only in the message text.
 */
export function isRedisFull(error: unknown): boolean {
  return error instanceof Error && /^(?:ERR )?(?:-)?OOM /u.test(error.message);
}

/** Resolves when the connection can be used; rejects after `timeoutMs`, and at once when Redis refuses the password. */
export async function redisReady(redis: Redis, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let last: unknown;
  const onError = (error: unknown): void => {
    last = error;
    if (error instanceof Error && refusal.test(error.message)) reject(error);
  };
  const timer = setTimeout(() => {
    const cause = last === undefined ? '' : `: ${describeReason(last)}`;
    reject(new Error(`redis is not ready after ${String(timeoutMs)} ms${cause}`));
  }, timeoutMs);
  redis.once('ready', resolve);
  redis.on('error', onError);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off('ready', resolve);
    redis.off('error', onError);
  }
}

/**
 * Refuses a Redis that may evict what was accepted (design: noeviction). Unknown policies (managed services hide
 * CONFIG) pass with a warning.
 * @throws ConfigError
 */
export async function assertNoEviction(redis: Redis, log: Log): Promise<void> {
  for (const slot of listSlots(redis)) if (slot === redis || slot.status === 'ready') await assertSlotKeeps(slot, log);
}

async function assertSlotKeeps(redis: Redis, log: Log): Promise<void> {
  const policy = await redis.config('GET', 'maxmemory-policy').then(
    (answer: unknown) => (Array.isArray(answer) ? String(answer[1]) : null),
    () => null,
  );
  if (policy === null) log.warn('cannot read maxmemory-policy: make sure that it is noeviction');
  else if (policy !== 'noeviction')
    throw new ConfigError([
      `REDIS_URL: must lead to a Redis that keeps everything (Redis has maxmemory-policy ${policy}; Concierge needs noeviction)`,
    ]);
}

/**
 * One Lua script from a `.lua` file. Runs by its hash; a Redis that does not know it (new, or emptied) is given the
 * text once more. `#include "name.lua"` lines are replaced by that file, from the folder of the including one, once:
 * files may include others.
 */
export class RedisScript {
  readonly #text: string;
  readonly #sha: string;

  constructor(file: URL) {
    this.#text = readWithIncludes(file, new Set());
    this.#sha = createHash('sha1').update(this.#text).digest('hex');
  }

  /** What the script answers, unread: the caller parses it. */
  async run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await redis.eval(this.#text, keys.length, ...keys, ...args);
    }
  }
}

function readWithIncludes(file: URL, included: Set<string>): string {
  return readFileSync(file, 'utf8').replaceAll(/^#include "(?<name>[\w./-]+)"$/gmu, (_line, name: string) => {
    const other = new URL(name, file);
    if (included.has(other.href)) return '';
    included.add(other.href);
    return readWithIncludes(other, included);
  });
}

/** `maxBytes`: 0 for no limit. */
export async function readRedisMemory(redis: Pick<Redis, 'info'>): Promise<{ readonly usedBytes: number; readonly maxBytes: number }> {
  const lines = (await redis.info('memory')).split('\r\n');
  const read = (name: string): number => Number(lines.find((line) => line.startsWith(`${name}:`))?.slice(name.length + 1) ?? 0);
  return { usedBytes: read('used_memory'), maxBytes: read('maxmemory') };
}
