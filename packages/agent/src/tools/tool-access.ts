import type { Authority } from '@concierge/contract';

/**
 * What a turn may do: the least of its agent's access and of the authority it was accepted with. The narrower forms
 * (`*`) apply to `cs`.
 */
export type ToolAccess = Authority;
