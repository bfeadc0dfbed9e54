import { z } from 'zod';
import { limits } from '../limits.ts';
import { ContactId, MessageText } from '../turns/chat.ts';

/** What the addresses of simulated contacts begin with: no provider has such an id, and nothing is ever sent to one. */
const SIMULATED_PREFIX = 'simulated:';

export function isSimulated(address: string | null | undefined): boolean {
  return address?.startsWith(SIMULATED_PREFIX) === true;
}

export function toSimulatedAddress(name: string): string {
  return `${SIMULATED_PREFIX}${name}`;
}

/** POST /api/channels/{channel}/simulate */
export const SimulationBody = z
  .strictObject({
    message: MessageText,
    sender: z
      .string()
      .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u, 'must be 1 to 63 lower-case letters, digits and inner hyphens')
      .default('visitor')
      .meta({ description: 'Who writes: one conversation for each. Shown with `simulated:` before it.' }),
    name: z
      .string()
      .trim()
      .min(1)
      .max(limits.contactNameMaxCharacters)
      .optional()
      .meta({ description: 'What the provider would call them; Slack says no names.' }),
  })
  .meta({ id: 'Simulation' });

export const SimulationReceipt = z
  .object({
    turnId: z.string(),
    contact_id: ContactId,
    simulated: z.literal(true).meta({ description: 'Nothing of it is sent to the provider.' }),
  })
  .meta({ id: 'SimulationReceipt' });
