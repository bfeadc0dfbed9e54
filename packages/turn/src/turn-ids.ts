import { randomBytes } from 'node:crypto';
import { hashParts } from '@concierge/runtime';

const idHash = { separator: 'unit', digits: 32 } as const;

/**
 * A turn id is random, or derived where the channel or caller has an id of its own, so that the same message is the
 * same turn wherever it is accepted. `identity`: the identity of the tenant's scope.
 */
export function deriveTurnId(identity: string, dedupeId: string): string {
  return `t_${hashParts(['turn', identity, dedupeId], idHash)}`;
}

export function newTurnId(): string {
  return `t_${randomBytes(16).toString('hex')}`;
}

/**
 * The 128-bit sender of an admin or anonymous session. Follows from the turn that starts it: accepted twice, it is one
 * session.
 */
export function deriveFreshSender(turnId: string): string {
  return hashParts(['sender', turnId], idHash);
}

export function isTurnId(text: string): boolean {
  return /^t_[0-9a-f]{32}$/u.test(text);
}
