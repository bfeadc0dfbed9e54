import { createRequire } from 'node:module';
import type { Redis } from 'ioredis';

const require = createRequire(import.meta.url);

/**
 * What begins every name in Redis, with the hash tag of the first slot. Code names everything as if it were there: the
 * connection of another slot puts that slot's tag into the names that it sends, and takes it out of those that come.
 */
export const redisPrefix = 'concierge:{q0}';

/** Parts of the key space of a Redis Cluster. */
const HASH_SLOTS = 16_384;

/** The part of the key space that holds the names with this tag. The package has no types. */
export const findHashSlot: (tag: string) => number = require('cluster-key-slot');

/**
 * The hash tags of so many slots, each in another equal part of the key space: masters that divide the key space evenly
 * hold as many slots each. The first is always that of a deployment with one slot.
 */
export function chooseTags(count: number): readonly string[] {
  const tags: string[] = [];
  const taken = new Set<number>();
  for (let number = 0; tags.length < count; number += 1) {
    const tag = `q${String(number)}`;
    const part = Math.floor((findHashSlot(tag) * count) / HASH_SLOTS);
    if (taken.has(part)) continue;
    taken.add(part);
    tags.push(tag);
  }
  return tags;
}

const groups = new WeakMap<Redis, readonly Redis[]>();

/** Connections of which each leads to one slot, in their order. */
export function joinSlots(connections: readonly Redis[]): void {
  for (const connection of connections) groups.set(connection, connections);
}

/** A connection for each slot: of a deployment with one slot, the connection itself. */
export function listSlots(redis: Redis): readonly Redis[] {
  return groups.get(redis) ?? [redis];
}

/** The connection beside this one that leads to the slot of a tenant. */
export function findSlot(redis: Redis, tenantId: string): Redis {
  const slots = groups.get(redis);
  return slots?.[findHashSlot(tenantId) % slots.length] ?? redis;
}

/** Whether a connection leads to the first slot, where everything is that belongs to no tenant. */
export function isFirstSlot(redis: Redis): boolean {
  return listSlots(redis)[0] === redis;
}

type MessageHandler = (rest: string, payload: string) => void;

/** By connection: the beginnings of channels' names, and what is done with their messages. */
const handlers = new WeakMap<Redis, (readonly [prefix: string, handle: MessageHandler])[]>();

/**
 * Calls `handle` with what is published on the channels whose names begin so, and with the rest of the name. A
 * connection looks once at what comes, however many parts subscribe on it.
 */
export function handleMessages(slot: Redis, prefix: string, handle: MessageHandler): void {
  const known = handlers.get(slot);
  known?.push([prefix, handle]);
  if (known !== undefined) return;
  const all = [[prefix, handle] as const];
  handlers.set(slot, all);
  slot.on('message', (channel: string, payload: string) => {
    for (const [start, pass] of all) if (channel.startsWith(start)) pass(channel.slice(start.length), payload);
  });
}

/** Has a connection send the names of the first slot as names of another, and report what comes as of the first. */
export function renameFor(redis: Redis, tag: string): void {
  const own = redisPrefix.replace('q0', tag);
  const toOwn = <Value>(value: Value): Value | string =>
    typeof value === 'string' && value.startsWith(redisPrefix) ? own + value.slice(redisPrefix.length) : value;
  const toFirst = <Value>(value: Value): Value | string =>
    typeof value === 'string' && value.startsWith(own) ? redisPrefix + value.slice(own.length) : value;
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    command.args = command.args.map(toOwn);
    if (command.name === 'scan') {
      const { resolve } = command;
      command.resolve = (answer: unknown) => {
        const [cursor, names] = Array.isArray(answer) ? answer : [];
        resolve([cursor, Array.isArray(names) ? names.map(toFirst) : names]);
      };
    }
    return send(command, stream);
  };
  const emit = redis.emit.bind(redis);
  redis.emit = (event, ...args: unknown[]) =>
    event === 'message' || event === 'pmessage' ? emit(event, ...args.slice(0, -1).map(toFirst), args.at(-1)) : emit(event, ...args);
}

/**
 * The answers of all slots that can be asked; a slot that is away keeps the others from nothing.
 * @throws when none can be asked
 */
export async function askSlots<Answer>(redis: Redis, ask: (slot: Redis) => Promise<Answer>): Promise<Answer[]> {
  const slots = listSlots(redis);
  const asked = await Promise.allSettled(slots.map(async (slot) => ask(slot)));
  const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const [first] = asked;
  if (answers.length === 0 && first?.status === 'rejected') throw first.reason;
  return answers;
}
