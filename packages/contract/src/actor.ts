import { z } from 'zod';
import { AgentName } from './tenant.ts';

/** Who did something that stays on file: an agent in a turn, a client with a key, or the operator at the command line. */
export const Actor = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('agent'), agent: AgentName, turnId: z.string() }),
  z.strictObject({ kind: z.literal('key'), keyId: z.string() }),
  z.strictObject({ kind: z.literal('operator') }),
]);
export type Actor = z.infer<typeof Actor>;
