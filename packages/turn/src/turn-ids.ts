import { hash, randomBytes } from 'node:crypto';

const SEPARATOR = '\u001F';

function hash32(parts: readonly string[]): string {
  return hash('sha256', parts.join(SEPARATOR)).slice(0, 32);
}

/** Random, or derived where the surface has an id of its own, so that the same message is the same turn wherever it is accepted. */
export function turnIdOf(accountId: string, dedupeId: string | null): string {
  return `t_${dedupeId === null ? randomBytes(16).toString('hex') : hash32(['turn', accountId, dedupeId])}`;
}

/** The 128-bit sender of an admin or anonymous session. Follows from the turn that starts it: accepted twice, it is one session. */
export function freshSenderOf(turnId: string): string {
  return hash32(['sender', turnId]);
}

export function isTurnId(text: string): boolean {
  return /^t_[0-9a-f]{32}$/u.test(text);
}
