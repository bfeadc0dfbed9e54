import type { AppName } from '@concierge/contract';
import { ToolError } from '../tool.ts';

/** Free text would be refused by the app: said before it is kept, with what may be done instead. */
export function windowClosed(app: AppName, sinceMs: number | undefined): ToolError {
  const since =
    sinceMs === undefined
      ? 'This contact has not written there, so the window has never been open.'
      : `The window has been closed since ${new Date(sinceMs).toISOString()}.`;
  const instead =
    app === 'whatsapp'
      ? 'Give template, with the name and language of one that WhatsApp has approved for the owner, or wait until they write.'
      : 'Nothing can be sent until they write; tell the owner.';
  return new ToolError(`NOT SENT. ${app} takes free text only within 24 hours after the contact’s last message. ${since} ${instead}`);
}
