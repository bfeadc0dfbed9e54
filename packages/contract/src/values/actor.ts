import { z } from 'zod';
import { CanonicalChannel } from '../channels/channel.ts';
import { limits } from '../limits.ts';
import { AgentName } from '../tenants/tenant.ts';

/**
 * Who did something that stays on file: an agent in a turn, a client with a key, the operator at the command line, or a
 * contact on a channel.
 */
export const Actor = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('agent'), agent: AgentName, turnId: z.string() }),
  z.object({ kind: z.literal('key'), keyId: z.string() }),
  z.object({ kind: z.literal('operator') }),
  /** The staff member that the tenant's settings name to answer there in the agent's place. */
  z.object({ kind: z.literal('contact'), channel: CanonicalChannel, sender: z.string().max(limits.senderMaxCharacters) }),
]);
export type Actor = z.infer<typeof Actor>;

/** In words for people and models. */
export function actorName(actor: Actor): string {
  switch (actor.kind) {
    case 'agent':
      return `the agent ${actor.agent}`;
    case 'key':
      return `key ${actor.keyId}`;
    case 'operator':
      return 'the operator';
    case 'contact':
      return `${actor.sender} on ${actor.channel}`;
  }
}
