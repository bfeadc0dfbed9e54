import { AppError, type AcceptedTurn, type TurnInput } from '@concierge/contract';
import { findSlot, waitForAnswer } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';

/**
 * What the index may take before a message is accepted without it: channels deliver again what is not answered within
 * seconds, and a database that hangs takes as long as a connection or a statement may.
 */
const INDEX_WAIT_MS = 3000;

export interface TurnReceipt {
  readonly turnId: string;
  readonly sessionId: string;
  /** The turn had been accepted before, by the same request. */
  readonly replayed: boolean;
}

/** The same message, accepted earlier. */
export interface Duplicate {
  readonly turnId: string;
  readonly sessionId: string;
  readonly requestHash: string;
}

/** A new message as a turn. */
export interface Prepared {
  readonly input: TurnInput;
  readonly turn: AcceptedTurn;
  /** Of the tenant (`TenantScope.identity`). */
  readonly identity: string;
  /** The turn was accepted before and has ended. */
  readonly ended: Duplicate | null;
}

/** Finds the same message, accepted earlier: in Redis, in its session file or in the index. */
export async function findDuplicate(
  redis: Redis,
  scope: TenantScope,
  { turnId, sessionId }: Pick<AcceptedTurn, 'turnId' | 'sessionId'>,
): Promise<Duplicate | null> {
  const [requestHash, session] = await findSlot(redis, scope.tenantId)
    .hmget(keyOf.turn(turnId), 'requestHash', 'session')
    .catch(() => [null, null]);
  if (requestHash != null && session != null) return { turnId, sessionId: session, requestHash };
  return await findEnded(scope, turnId, sessionId);
}

/** Finds the same message whose turn has ended. */
export async function findEnded(scope: TenantScope, turnId: string, sessionId: string): Promise<Duplicate | null> {
  const saved = await scope.sessions.findTurn(sessionId, turnId);
  if (saved !== undefined) return { turnId, sessionId, requestHash: saved.requestHash };
  const asked = scope.index.findTurn(turnId).catch((): null => null);
  const indexed = await Promise.race([asked, waitForAnswer(INDEX_WAIT_MS).then((): null => null)]);
  if (indexed === null) {
    // The index does not answer. The history is long, and the only other record.
    const compacted = await scope.sessions.findCompactedTurn(sessionId, turnId);
    return compacted === undefined ? null : { turnId, sessionId, requestHash: compacted.requestHash };
  }
  return indexed === undefined ? null : { turnId, sessionId: indexed.sessionId, requestHash: indexed.record.requestHash };
}

/** The receipt of a message that was accepted before. @throws AppError `idempotency_conflict` for another request */
export function replay(duplicate: Duplicate, input: TurnInput): TurnReceipt {
  if (duplicate.requestHash !== input.requestHash)
    throw new AppError('idempotency_conflict', 'This Idempotency-Key was used with another request.');
  return { turnId: duplicate.turnId, sessionId: duplicate.sessionId, replayed: true };
}
