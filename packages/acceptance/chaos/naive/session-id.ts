import { createHash } from 'node:crypto';

/** Stable for a sender, as the product's is. */
export function sessionIdOf(agent: string, sender: string): string {
  return createHash('sha256').update(`${agent} ${sender}`).digest('hex').slice(0, 32);
}
