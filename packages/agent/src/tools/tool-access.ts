import type { AcceptedTurn } from '@concierge/contract';

/** Who asks: the contract's narrower forms (`*`) apply to `cs`. */
export type ToolAccess = 'admin' | 'cs';

/** What an agent may do: the cs agent never more than cs, any other agent what the turn was accepted with. */
export function accessOf({ agent, authority }: Pick<AcceptedTurn, 'agent' | 'authority'>): ToolAccess {
  return agent === 'cs' ? 'cs' : authority;
}
