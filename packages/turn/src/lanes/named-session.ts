import { AppError } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { findSlot } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import type { Lanes } from './lanes.ts';

interface Sources {
  readonly redis: Redis;
  readonly lanes: Lanes;
}

/**
 * The session that a message names by its `contact_id`: its sender's own, or one of the same agent.
 * @throws AppError `contact_mismatch`, `not_found` (contact_id), `overloaded` while it cannot be looked up
 */
export async function findNamedSession(
  sources: Sources,
  scope: TenantScope,
  { agent, contactId, senders }: { readonly agent: string; readonly contactId: string; readonly senders: string | null },
): Promise<string> {
  if (senders === contactId) return contactId;
  if (senders !== null) throw new AppError('contact_mismatch');
  if ((await findAgent(sources, scope, contactId)) !== agent)
    throw new AppError('not_found', 'No session of this agent has this contact_id.');
  return contactId;
}

/** A session exists once its first turn is accepted, which is before its file does. */
async function findAgent({ redis, lanes }: Sources, scope: TenantScope, sessionId: string): Promise<string | null> {
  const session = await scope.sessions.load(sessionId);
  if (session !== undefined) return session.agent;
  const unknown = (cause?: unknown): AppError =>
    new AppError('overloaded', 'The service cannot look the session up right now.', { cause, retryAfterSeconds: 2 });
  const slot = findSlot(redis, scope.tenantId);
  const [agent, { isReady }] = await Promise.all([
    slot.hget(keyOf.lease({ tenantId: scope.tenantId, sessionId }), 'agent'),
    lanes.readiness({ slot }),
  ]).catch((error: unknown) => {
    throw unknown(error);
  });
  // The session's first turn may wait in the inbox.
  if (agent === null && !isReady) throw unknown();
  return agent;
}
