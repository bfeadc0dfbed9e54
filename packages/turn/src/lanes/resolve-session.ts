import { AppError, type TurnInput } from '@concierge/contract';
import { deriveSessionId, type TenantScope } from '@concierge/tenant';
import { findSlot } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import { deriveFreshSender, keyOf } from '../keys.ts';
import type { Lanes } from './lanes.ts';

interface Sources {
  readonly redis: Redis;
  readonly lanes: Lanes;
}

/**
 * The session that a message belongs to: its sender's, the one that it names, or one of its own.
 * @throws AppError `contact_mismatch`, `not_found` (contact_id), `overloaded` while it cannot be looked up
 */
export async function resolveSession(
  sources: Sources,
  scope: TenantScope,
  { input, turnId }: { readonly input: TurnInput; readonly turnId: string },
): Promise<string> {
  if (input.sender !== null) {
    const derived = deriveSessionId(input.agent, input.channel, input.sender);
    if (input.contactId !== null && input.contactId !== derived) throw new AppError('contact_mismatch');
    return derived;
  }
  if (input.contactId === null) return deriveSessionId(input.agent, input.channel, deriveFreshSender(turnId));
  const agent = await findAgent(sources, scope, input.contactId);
  if (agent !== input.agent) throw new AppError('not_found', 'No session of this agent has this contact_id.');
  return input.contactId;
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
