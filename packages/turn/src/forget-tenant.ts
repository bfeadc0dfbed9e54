import type { Redis } from 'ioredis';
import { keyOf, queuePrefix } from './keys.ts';

const KEYS_AT_ONCE = 500;

/**
 * Kinds of keys whose name continues with the tenant's id, and then ends or continues with `/` or, for a share, `@`.
 */
const kindsByTenant = new Set([
  'lane',
  'lease',
  'line',
  'admitted',
  'deliveries-seen',
  'binding-tried',
  'pace',
  'pace-hold',
  'early-receipts',
  'early-receipts-of',
  'due-of',
  'requests',
]);

/**
 * Deletes everything of a removed tenant from Redis: its turns with the text that was streamed, its lanes and its due
 * work. A tenant created later with the same name finds none of it.
 */
export async function forgetTenant(redis: Redis, tenantId: string): Promise<void> {
  const pages = redis.scanStream({ match: `${queuePrefix}:*`, count: KEYS_AT_ONCE });
  for await (const page of pages) {
    const keys = Array.isArray(page) ? page.map(String) : [];
    const own = [...keys.filter((key) => isKeyOf(key, tenantId)), ...(await turnKeysOf(redis, keys, tenantId))];
    if (own.length > 0) await redis.unlink(...own);
  }
  for (const dueWork of [keyOf.due, keyOf.heldBack, ...['schedules', 'events', 'deliveries'].flatMap(setsOf)]) {
    for await (const page of redis.zscanStream(dueWork, { match: `${tenantId}/*`, count: KEYS_AT_ONCE })) {
      // Members and their scores in turns; no score has a slash.
      const members = Array.isArray(page) ? page.map(String).filter((member) => member.startsWith(`${tenantId}/`)) : [];
      if (members.length > 0) await redis.zrem(dueWork, ...members);
    }
  }
}

function setsOf(kind: string): string[] {
  const due = keyOf.dueWork(kind);
  return [due, `${due}:claimed`];
}

function isKeyOf(key: string, tenantId: string): boolean {
  if (key.startsWith(keyOf.dueWork(`events/${tenantId}/`))) return true;
  const [kind = '', ...rest] = key.slice(queuePrefix.length + 1).split(':');
  return kindsByTenant.has(kind) && rest.join(':').split(/[/@]/u, 1)[0] === tenantId;
}

/** A turn's keys contain only its id: its record names the tenant. */
async function turnKeysOf(redis: Redis, keys: readonly string[], tenantId: string): Promise<string[]> {
  const prefix = keyOf.turn('');
  const turnIds = keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  const accounts = await Promise.all(turnIds.map(async (turnId) => redis.hget(keyOf.turn(turnId), 'account')));
  const own = turnIds.filter((_, index) => accounts[index] === tenantId);
  return own.flatMap((turnId) => [keyOf.turn(turnId), keyOf.events(turnId)]);
}
