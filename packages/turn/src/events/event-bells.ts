import { randomUUID } from 'node:crypto';
import type { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript, type Log } from '@concierge/runtime';
import { bellOptions, openBellQueue, openBellWorker, type KeptBells } from '../bell-queue.ts';
import { keyOf, queuePrefix } from '../keys.ts';

export const eventQueue = 'events';

const scripts = {
  hold: new RedisScript(new URL('../lua/hold-endpoint.lua', import.meta.url)),
  letGo: new RedisScript(new URL('../lua/let-go-endpoint.lua', import.meta.url)),
  plan: new RedisScript(new URL('../lua/plan-events.lua', import.meta.url)),
  due: new RedisScript(new URL('../lua/due-events.lua', import.meta.url)),
};

/** Prolonged all the time: whoever dies is soon followed by another. */
const HOLD_MS = 10_000;
export const HOLD_AGAIN_MS = 3000;

/** One endpoint of one tenant. */
export interface EndpointPlace {
  readonly accountId: string;
  readonly endpointId: string;
}

/** A job names an endpoint that may have something due; which events these are stands in a sorted set, and that can be made again from the files. */
const BellJob = z.object({ accountId: z.string(), endpointId: z.string() });

/** Nothing: an id of a bell that has been answered must be free for the next one. */
const kept: KeptBells = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
const jobOptions = bellOptions(kept);
const jobName = 'event';

const DueReply = z.tuple([z.array(z.string()), z.string(), z.number()]);

/** An event that waits, and how long until it is tried: a time of day would be that of another machine's clock. */
export interface PlannedEvent {
  readonly id: string;
  readonly delayMs: number;
}

/**
 * When each waiting event is to be tried, by endpoint, and the bells that call for it. All of it can be thrown away: what is true stands in the files.
 */
export class EventBells {
  readonly queue: Queue;
  readonly #redis: Redis;

  constructor(redis: Redis, log: Log) {
    this.#redis = redis;
    this.queue = openBellQueue(eventQueue, { redis, kept, log });
  }

  /** One that is planned already stays where it is. */
  async lay(place: EndpointPlace, events: readonly PlannedEvent[]): Promise<void> {
    if (events.length > 0) await this.#plan(place, events, { onlyNew: true });
  }

  async plan(place: EndpointPlace, event: PlannedEvent): Promise<void> {
    await this.#plan(place, [event], { onlyNew: false });
  }

  async forget(place: EndpointPlace, id: string): Promise<void> {
    await this.#redis.zrem(keyOf.waitingEvents(memberOf(place)), id);
  }

  async due(place: EndpointPlace, limit: number): Promise<string[]> {
    return (await this.#due(place, limit)).ids;
  }

  /** Of these ids those that are not planned. */
  async unplanned(place: EndpointPlace, ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const scores = await this.#redis.zmscore(keyOf.waitingEvents(memberOf(place)), ...ids);
    return ids.filter((_id, index) => scores[index] == null);
  }

  /** Something is due. Every call is heard, whoever is at work for the endpoint now. */
  async ring(place: EndpointPlace): Promise<void> {
    await this.queue.add(jobName, dataOf(place), { ...jobOptions, jobId: jobIdOf(place, randomUUID()) });
  }

  /** For what is left: at once, or when the next one is due. */
  async ringNext(place: EndpointPlace): Promise<void> {
    const next = await this.#next(place);
    if (next === undefined) return;
    if (next.inMs === 0) await this.ring(place);
    else await this.#ringAt(place, next);
  }

  /** As `ringNext`, by somebody who looks again and again: rings once until that is heard, and not where somebody is at work. */
  async ringAgain(place: EndpointPlace): Promise<void> {
    const next = await this.#next(place);
    if (next === undefined || (await this.#redis.exists(keyOf.heldEndpoint(memberOf(place)))) === 1) return;
    if (next.inMs > 0) await this.#ringAt(place, next);
    else await this.queue.add(jobName, dataOf(place), { ...jobOptions, jobId: jobIdOf(place, 'again') });
  }

  /** False while it is another sender's. */
  async hold(place: EndpointPlace, token: string): Promise<boolean> {
    return (await scripts.hold.run(this.#redis, [keyOf.heldEndpoint(memberOf(place))], [token, HOLD_MS])) === 1;
  }

  async letGo(place: EndpointPlace, token: string): Promise<void> {
    await scripts.letGo.run(this.#redis, [keyOf.heldEndpoint(memberOf(place))], [token]);
  }

  async stop(): Promise<void> {
    await this.queue.close();
  }

  async #plan(place: EndpointPlace, events: readonly PlannedEvent[], { onlyNew }: { readonly onlyNew: boolean }): Promise<void> {
    const given = events.map(({ id, delayMs }) => ({ id, delayMs }));
    await scripts.plan.run(this.#redis, [keyOf.waitingEvents(memberOf(place)), queuePrefix], [JSON.stringify({ events: given, onlyNew })]);
  }

  async #due(place: EndpointPlace, limit: number): Promise<{ readonly ids: string[]; readonly first: Upcoming | undefined }> {
    const reply = await scripts.due.run(this.#redis, [keyOf.waitingEvents(memberOf(place)), queuePrefix], [JSON.stringify({ limit })]);
    const [ids, at, inMs] = DueReply.parse(reply);
    return { ids, first: at === '' ? undefined : { at, inMs } };
  }

  async #next(place: EndpointPlace): Promise<Upcoming | undefined> {
    return (await this.#due(place, 1)).first;
  }

  /** One job for one time: another for the same time adds nothing. */
  async #ringAt(place: EndpointPlace, { at, inMs }: Upcoming): Promise<void> {
    await this.queue.add(jobName, dataOf(place), { ...jobOptions, delay: inMs, jobId: jobIdOf(place, `at-${at}`) });
  }
}

/** The first try of all that waits for an endpoint: by service time, and how far ahead. */
interface Upcoming {
  readonly at: string;
  readonly inMs: number;
}

export interface AnswerEventsOptions {
  readonly redis: Redis;
  readonly concurrency: number;
  readonly log: Log;
  readonly answer: (place: EndpointPlace) => Promise<void>;
}

export function answerEventBells({ redis, concurrency, log, answer }: AnswerEventsOptions): Worker {
  const worker = openBellWorker(eventQueue, { redis, concurrency, log, kept, schema: BellJob, answer });
  worker.on('failed', (_job, error) => {
    log.error({ err: error }, 'events could not be looked after');
  });
  return worker;
}

function dataOf({ accountId, endpointId }: EndpointPlace): z.infer<typeof BellJob> {
  return { accountId, endpointId };
}

function memberOf({ accountId, endpointId }: EndpointPlace): string {
  return `${accountId}/${endpointId}`;
}

function jobIdOf({ accountId, endpointId }: EndpointPlace, which: string): string {
  return `${accountId}.${endpointId}.${which}`;
}
