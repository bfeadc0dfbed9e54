import type { IndexedTurn } from '@concierge/index';
import { findSlot } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf } from './keys.ts';

/**
 * A turn that has ended. A worker announces the end also where the index was locked all the time, and may die before
 * it is written there: as long as Redis knows the turn its session file is asked, too, and the index gets it.
 */
export async function findEndedTurn(redis: Redis, scope: TenantScope, turnId: string): Promise<IndexedTurn | undefined> {
  const indexed = await scope.index.findTurn(turnId);
  if (indexed !== undefined) return indexed;
  const sessionId = await findSlot(redis, scope.tenantId)
    .hget(keyOf.turn(turnId), 'session')
    .catch(() => null);
  const session = sessionId === null ? undefined : await scope.sessions.load(sessionId);
  const record = session?.turns.find(({ id }) => id === turnId);
  if (session === undefined || record === undefined) return undefined;
  scope.index.putSession(session, { turnIds: [turnId] }).catch(() => undefined);
  return { sessionId: session.id, agent: session.agent, channel: session.channel, record };
}
