import { limits } from '@concierge/contract';
import type { KeptMessage } from './messaging-view.ts';

/** What became of it, in words that leave no room for "it was sent". */
export function describeKept({ message, isNew, isPaused }: KeptMessage, app: string): string {
  const hours = String(limits.outboxTtlSeconds / 3600);
  return [
    `NOT SENT YET. ${isNew ? 'Kept' : 'Kept already by this same call'} as ${message.id} for ${message.to} on ${app}.`,
    `Sending to chat apps is not connected in this installation: the message waits, and is dropped when it could not be sent by ${message.expiresAt} (${hours} hours). Do not say that it was sent.`,
    ...(isPaused ? ['A person has this contact’s conversation (see handoff): it is held back until that is resumed.'] : []),
    ...(app === 'whatsapp' || app === 'messenger'
      ? ['Reply window: unknown. This app takes free text only within 24 hours after the contact’s last message.']
      : []),
  ].join('\n');
}
